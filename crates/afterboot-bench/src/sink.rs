//! Where the events go: HTTP/1.1 by hand, a thread a connection.

mod dialect;
mod http;

pub(crate) use dialect::Dialect;

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde::Serialize;

use crate::args::Mode;

/// What came in.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Arrived {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    pub(crate) head_bytes: u64,
    pub(crate) body_bytes: u64,
    pub(crate) inflated_bytes: u64,
    /// In requests that were answered with a success, or that nobody answers.
    pub(crate) events: u64,
    /// Requests that the sink could make nothing of.
    pub(crate) unreadable: u64,
}

/// A running sink. Its threads end with the process: a run leaves one that waits for connections behind.
#[derive(Debug)]
pub(crate) struct Sink {
    url: String,
    arrived: Arc<Mutex<Arrived>>,
}

impl Sink {
    pub(crate) fn start(dialect: Dialect, mode: Mode) -> io::Result<Sink> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let shared = arrived.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                thread::spawn(move || {
                    lock(&shared).connections += 1;
                    // The client is gone or was killed: that is its right.
                    let _ = serve(&stream, dialect, mode, &shared);
                });
            }
        });
        Ok(Sink { url, arrived })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn arrived(&self) -> Arrived {
        lock(&self.arrived).clone()
    }
}

fn lock(arrived: &Mutex<Arrived>) -> MutexGuard<'_, Arrived> {
    arrived.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &TcpStream, dialect: Dialect, mode: Mode, arrived: &Mutex<Arrived>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    while let Some(request) = http::read(&mut reader, &mut writer)? {
        let judged = dialect.judge(&request);
        {
            let mut arrived = lock(arrived);
            arrived.requests += 1;
            arrived.head_bytes += request.head_bytes;
            arrived.body_bytes += request.body_bytes;
            arrived.inflated_bytes += judged.inflated;
            arrived.events += judged.events;
            arrived.unreadable += u64::from(judged.status >= 400);
        }
        match mode {
            Mode::Ok => writer.write_all(&judged.answer())?,
            Mode::Hung => {
                io::copy(&mut reader.by_ref(), &mut io::sink())?;
                return Ok(());
            }
        }
    }
    Ok(())
}
