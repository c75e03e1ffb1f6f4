//! A collector for tests and for the torture example: a real HTTP server on a thread and runtime of its own, which does
//! what a [`Mode`] says and keeps a [`Ledger`] of its own, so that the client's count has something to be held against.

mod answer;
mod connection;
mod contract;
pub(crate) mod ledger;
pub(crate) mod mode;

pub(crate) use ledger::Ledger;
pub(crate) use mode::Mode;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as std_mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The path of the endpoint.
pub(crate) const PATH: &str = "/v1/events";

// Others on the machine may hold the port for a moment while it is closed.
const REBIND_WITHIN: Duration = Duration::from_secs(20);

/// What the connections and the test share.
pub(crate) struct State {
    mode: Mode,
    // Requests since the mode was set, by which `Flap` counts.
    turn: u64,
    token: Option<String>,
    ledger: Ledger,
}

type Shared = Arc<Mutex<State>>;

fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Command {
    Set(Mode, std_mpsc::Sender<()>),
    Stop,
}

/// A running server. It stops when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Shared,
    running: Option<(mpsc::UnboundedSender<Command>, JoinHandle<()>)>,
}

impl Server {
    /// Starts one on a free port of the loopback interface.
    pub(crate) fn start(mode: Mode) -> Server {
        let state = State { mode, turn: 0, token: None, ledger: Ledger::default() };
        let mut server = Server {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            shared: Arc::new(Mutex::new(state)),
            running: None,
        };
        server.restart();
        server
    }

    /// The endpoint's address.
    pub(crate) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Goes over to another mode. When this returns, it is in force: [`Mode::Refuse`] refuses, and after it the port is
    /// open again.
    pub(crate) fn set_mode(&self, mode: Mode) {
        match &self.running {
            Some((commands, _)) => {
                let (done, wait) = std_mpsc::channel();
                assert!(commands.send(Command::Set(mode, done)).is_ok(), "the server runs");
                wait.recv().expect("the server goes over to the mode");
            }
            None => lock(&self.shared).set(mode),
        }
    }

    /// From now on a request without this token is answered with 401.
    pub(crate) fn require_token(&self, token: Option<&str>) {
        lock(&self.shared).token = token.map(str::to_owned);
    }

    /// The ledger as it is now. For a look at a long one, [`look`](Server::look) spares the copy.
    pub(crate) fn ledger(&self) -> Ledger {
        self.look(Ledger::clone)
    }

    /// Asks the ledger something.
    pub(crate) fn look<T>(&self, ask: impl FnOnce(&Ledger) -> T) -> T {
        ask(&lock(&self.shared).ledger)
    }

    /// Waits until the ledger is as the test wants it, for a time that only a broken run needs.
    ///
    /// # Panics
    /// After 30 s, with what was waited for and the ledger.
    pub(crate) async fn wait_until(&self, what: &str, done: impl Fn(&Ledger) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.look(&done) {
            assert!(Instant::now() < deadline, "no {what} within 30 s: {}", self.look(Ledger::summary));
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Closes the port and every connection. What was answered half is not answered further; the ledger stays.
    pub(crate) fn stop(&mut self) {
        if let Some((commands, thread)) = self.running.take() {
            let _ = commands.send(Command::Stop);
            assert!(thread.join().is_ok(), "the server did not panic");
        }
    }

    /// Stops, and starts again on the same port with the same ledger and mode.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let (commands, orders) = mpsc::unbounded_channel();
        let (bound, wait) = std_mpsc::channel();
        let shared = self.shared.clone();
        let address = self.address;
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = bind(address).await;
                let address = listener.local_addr().expect("a bound address");
                let listener = (lock(&shared).mode != Mode::Refuse).then_some(listener);
                let _ = bound.send(address);
                serve(shared, address, listener, orders).await;
            });
        });
        self.address = wait.recv().expect("the server's thread binds its port");
        self.running = Some((commands, thread));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((commands, thread)) = self.running.take() {
            let _ = commands.send(Command::Stop);
            let _ = thread.join();
        }
    }
}

impl State {
    fn set(&mut self, mode: Mode) {
        self.mode = mode;
        self.turn = 0;
    }
}

async fn bind(address: SocketAddr) -> TcpListener {
    let deadline = Instant::now() + REBIND_WITHIN;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(Instant::now() < deadline, "{address} is not free again: {error}"),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

async fn serve(
    shared: Shared,
    address: SocketAddr,
    mut listener: Option<TcpListener>,
    mut orders: mpsc::UnboundedReceiver<Command>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                None | Some(Command::Stop) => return,
                Some(Command::Set(mode, done)) => {
                    if mode == Mode::Refuse {
                        listener = None;
                        connections.shutdown().await;
                    } else if listener.is_none() {
                        listener = Some(bind(address).await);
                    }
                    lock(&shared).set(mode);
                    let _ = done.send(());
                }
            },
            accepted = accept(listener.as_ref()) => if let Ok(stream) = accepted {
                connections.spawn(connection::serve(shared.clone(), stream));
            },
            Some(ended) = connections.join_next() => {
                assert!(!ended.is_err_and(|error| error.is_panic()), "no connection panics");
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}
