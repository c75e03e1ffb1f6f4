//! The server: stores chunks by offset, fails at random, and restarts.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afterboot_retry::JitterRng;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::http::{Received, answer, receive};

const REQUESTS_BETWEEN_RESTARTS: u32 = 15;
const DOWN_FOR: Duration = Duration::from_millis(300);

pub(crate) struct Server {
    address: SocketAddr,
    stored: Arc<Mutex<Stored>>,
    running: JoinHandle<io::Result<()>>,
}

/// What outlives a restart.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stored {
    pub(crate) bytes: Vec<u8>,
    pub(crate) failures: u32,
    pub(crate) restarts: u32,
    /// Of the failures, those after the work was done.
    pub(crate) lost_answers: u32,
}

/// How a request goes wrong, if it does.
enum Fault {
    None,
    Unavailable {
        retry_after: Option<u32>,
    },
    /// The connection is dropped before anything is done.
    LostRequest,
    /// The work is done, and nobody hears of it.
    LostAnswer,
}

impl Server {
    pub(crate) async fn start(seed: u64) -> io::Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let stored = Arc::new(Mutex::new(Stored::default()));
        let running = tokio::spawn(run(listener, address, stored.clone(), JitterRng::seeded(seed)));
        Ok(Server { address, stored, running })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops, and hands out what was stored.
    pub(crate) fn stop(self) -> Stored {
        self.running.abort();
        lock(&self.stored).clone()
    }
}

async fn run(
    listener: TcpListener,
    address: SocketAddr,
    stored: Arc<Mutex<Stored>>,
    mut rng: JitterRng,
) -> io::Result<()> {
    let mut listener = listener;
    loop {
        for _ in 0..REQUESTS_BETWEEN_RESTARTS {
            let (stream, _) = listener.accept().await?;
            let fault = fault(&mut rng);
            // A client that went away is no reason to stop.
            if serve(BufReader::new(stream), &stored, fault).await.is_err() {
                lock(&stored).failures += 1;
            }
        }
        drop(listener);
        sleep(DOWN_FOR).await;
        lock(&stored).restarts += 1;
        listener = TcpListener::bind(address).await?;
    }
}

fn fault(rng: &mut JitterRng) -> Fault {
    match rng.unit() {
        draw if draw < 0.08 => Fault::Unavailable { retry_after: None },
        draw if draw < 0.12 => Fault::Unavailable { retry_after: Some(0) },
        draw if draw < 0.20 => Fault::LostRequest,
        draw if draw < 0.28 => Fault::LostAnswer,
        _ => Fault::None,
    }
}

async fn serve(mut stream: BufReader<TcpStream>, stored: &Mutex<Stored>, fault: Fault) -> io::Result<()> {
    let request = receive(&mut stream).await?;
    match fault {
        Fault::None => {}
        Fault::LostRequest => return Err(io::ErrorKind::ConnectionReset.into()),
        Fault::LostAnswer => {
            store(stored, request);
            lock(stored).lost_answers += 1;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Fault::Unavailable { retry_after } => {
            lock(stored).failures += 1;
            let header =
                retry_after.map_or("X-Why: busy".to_owned(), |seconds| format!("Retry-After: {seconds}"));
            return answer(&mut stream, "503 Service Unavailable", &header).await;
        }
    }
    let offset = store(stored, request);
    answer(&mut stream, "200 OK", &format!("Upload-Offset: {offset}")).await
}

/// Stores what is new and says how far it is. A chunk that begins past the end is not stored: the answer tells the client
/// where to go on.
fn store(stored: &Mutex<Stored>, request: Received) -> usize {
    let mut stored = lock(stored);
    let end = stored.bytes.len();
    if request.method == "PUT" && request.offset <= end {
        let known = end - request.offset;
        stored.bytes.extend_from_slice(request.body.get(known..).unwrap_or_default());
    }
    stored.bytes.len()
}

fn lock(stored: &Mutex<Stored>) -> MutexGuard<'_, Stored> {
    stored.lock().unwrap_or_else(PoisonError::into_inner)
}
