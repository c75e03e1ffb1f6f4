//! The open-loop client. Requests are due on a fixed schedule whether or not earlier ones were answered,
//! and a latency counts from the moment the request was due: a service that stalls cannot slow the client
//! down and so hide its own stall.
//!
//! It has threads of its own, outside the service's runtime. When all connections are busy, due requests
//! queue here, and the time they queue is part of their latency.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use tokio::sync::oneshot;

use crate::conversation::converse;
use crate::{Failure, http};

pub(crate) const CONNECTIONS: usize = 64;
pub(crate) const EVERY: Duration = Duration::from_millis(2);
const CONNECT: Duration = Duration::from_secs(10);

/// One answered request; both times are exact to the client's own wake-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// Since the start of the schedule.
    pub(crate) due: Duration,
    pub(crate) latency: Duration,
}

/// All that a run's client has to tell.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) all: Vec<Answer>,
    /// By how much the schedule itself was late at worst: the machine's cores were taken, by the side tasks
    /// or by something else. It is part of the latencies.
    pub(crate) lateness: Duration,
}

/// A client whose connections stand and have carried a request each, waiting for the start.
pub(crate) struct Client {
    start: mpsc::Sender<Instant>,
    stop: Arc<AtomicBool>,
    answers: oneshot::Receiver<Result<Answers, Failure>>,
}

impl Client {
    /// Opens the connections. A first request on each takes accept and registration out of the measurement.
    pub(crate) async fn connect(
        address: SocketAddr,
        paths: &'static [&'static str],
    ) -> Result<Self, Failure> {
        let (start, started) = mpsc::channel();
        let (warm, warmed) = oneshot::channel();
        let (send, answers) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        thread::Builder::new().name("client".into()).spawn(move || {
            let requests: Vec<_> = paths.iter().map(|path| http::request(path)).collect();
            let lines = match open(address, &requests) {
                Ok(lines) => lines,
                Err(failure) => return drop(warm.send(Err(failure))),
            };
            // A side that went away is an aborted round: nothing is left to tell it.
            if warm.send(Ok(())).is_ok()
                && let Ok(zero) = started.recv()
            {
                drop(send.send(converse(lines, &requests, zero, &stopped)));
            }
        })?;
        warmed.await.map_err(|_| "the client thread ended while connecting")??;
        Ok(Self { start, stop, answers })
    }

    /// The schedule begins: request n is due at `zero` + n · 2 ms.
    pub(crate) fn start(&self, zero: Instant) -> Result<(), Failure> {
        Ok(self.start.send(zero).map_err(|_| "the client thread ended before the start")?)
    }

    /// Ends the schedule and waits for what is still unanswered.
    pub(crate) async fn finish(self) -> Result<Answers, Failure> {
        self.stop.store(true, Relaxed);
        self.answers.await.map_err(|_| "the client thread ended without an answer")?
    }
}

fn open(address: SocketAddr, requests: &[Vec<u8>]) -> Result<Vec<TcpStream>, Failure> {
    let mut lines = Vec::with_capacity(CONNECTIONS);
    for line in 0..CONNECTIONS {
        let mut stream = std::net::TcpStream::connect_timeout(&address, CONNECT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CONNECT))?;
        stream.write_all(&requests[line % requests.len()])?;
        let mut response = Vec::new();
        let mut chunk = [0; 4096];
        while http::response_length(&response)?.is_none_or(|length| response.len() < length) {
            match stream.read(&mut chunk)? {
                0 => return Err("the service closed a fresh connection".into()),
                n => response.extend_from_slice(&chunk[..n]),
            }
        }
        stream.set_nonblocking(true)?;
        lines.push(TcpStream::from_std(stream));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::clock;
    use crate::corpus::Corpus;
    use crate::service::{PATHS, Service};

    /// Real time is the point here: the client's threads run while the service's only one is held.
    #[test]
    fn a_stall_is_in_the_latency_of_every_request_due_meanwhile_even_without_a_free_connection() {
        const STALL: Duration = Duration::from_millis(400);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("its address");
            let app = App::new(Arc::new(Corpus::of_this_example()));
            tokio::spawn(Service::new(app, None).serve(listener));
            let client = Client::connect(address, &PATHS).await.expect("connected");
            let zero = clock::now();
            client.start(zero).expect("waiting for the start");
            clock::hold(STALL);
            let stalled = zero.elapsed();
            let answers = client.finish().await.expect("all answered");
            let meanwhile: Vec<_> = answers.all.iter().filter(|answer| answer.due < stalled).collect();
            assert!(meanwhile.len() > CONNECTIONS, "only {} requests were due", meanwhile.len());
            assert!(meanwhile.iter().all(|answer| answer.due + answer.latency >= stalled));
        });
    }
}
