//! Some load for the service to boot under: a few clients on threads of their own, outside its runtime, each
//! with one connection and one request at a time.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::{Failure, clock, http};

const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(20);
/// Requests a client: so many in any case, and so many at most, should the boot take long.
const AT_LEAST: usize = 75;
const AT_MOST: usize = 250;
/// Longer than the boot may take: a search is answered when the index is there.
const PATIENCE: Duration = Duration::from_secs(50);

const PATHS: [&str; 4] = ["/", "/search?q=spawn_blocking", "/search?q=impl+Future", "/search?q=%5Bderive%28"];

/// How many answers there were, and how long the slowest took.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    home: (usize, Duration),
    search: (usize, Duration),
}

/// Asks until `stop` is set, on this thread and others.
pub(crate) fn run(address: SocketAddr, stop: &AtomicBool) -> Result<Answers, Failure> {
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(address, number, stop))).collect();
        let mut all = Answers::default();
        for client in clients {
            let answers = client.join().map_err(|_| "a client panicked")??;
            all.home = (all.home.0 + answers.home.0, all.home.1.max(answers.home.1));
            all.search = (all.search.0 + answers.search.0, all.search.1.max(answers.search.1));
        }
        Ok(all)
    })
}

fn client(address: SocketAddr, number: usize, stop: &AtomicBool) -> Result<Answers, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answers = Answers::default();
    for (sent, path) in PATHS.into_iter().cycle().skip(number).take(AT_MOST).enumerate() {
        if sent >= AT_LEAST && stop.load(Relaxed) {
            break;
        }
        let asked = clock::now();
        ask(&mut stream, path).map_err(|error| format!("GET {path}: {error}"))?;
        let (count, slowest) = if path == "/" { &mut answers.home } else { &mut answers.search };
        *count += 1;
        *slowest = asked.elapsed().max(*slowest);
        clock::hold(PAUSE);
    }
    Ok(answers)
}

fn ask(stream: &mut TcpStream, path: &str) -> Result<(), Failure> {
    stream.write_all(&http::request(path))?;
    let mut response = Vec::new();
    let mut chunk = [0; 4096];
    while http::response_length(&response)?.is_none_or(|length| response.len() < length) {
        match stream.read(&mut chunk)? {
            0 => return Err("the service closed the connection".into()),
            n => response.extend_from_slice(&chunk[..n]),
        }
    }
    Ok(())
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Answers { home, search } = self;
        write!(
            f,
            "{} x GET /, slowest {:.1} ms; {} x GET /search, slowest {:.1} ms (the first wait for the index)",
            home.0,
            clock::millis(home.1),
            search.0,
            clock::millis(search.1)
        )
    }
}
