//! The look-up of the endpoint's name, which blocks, on a thread of its own.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};
use std::vec;

use hyper_util::client::legacy::connect::dns::Name;
use tokio::sync::oneshot;
use tower_service::Service;

/// A result that came too late is kept for this long, for the next request.
const KEPT: Duration = Duration::from_secs(60);

type Found = io::Result<Vec<SocketAddr>>;

/// Looks one name up, the endpoint's: one look-up at a time, which concurrent requests share. One that hangs costs
/// its own thread and no other.
#[derive(Debug, Clone, Default)]
pub(super) struct Names(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    under_way: Option<UnderWay>,
    late: Option<(Instant, Vec<SocketAddr>)>,
}

#[derive(Debug)]
struct UnderWay {
    /// Whose thread it is: in a forked child there is none.
    process: u32,
    waiting: Vec<oneshot::Sender<Found>>,
}

impl Names {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, name: Name) -> oneshot::Receiver<Found> {
        let (answer, asker) = oneshot::channel();
        let mut state = self.state();
        if let Some((_, found)) = state.late.take().filter(|(at, _)| at.elapsed() < KEPT) {
            let _ = answer.send(Ok(found));
            return asker;
        }
        let under_way = state.under_way.as_mut().filter(|under_way| under_way.process == process::id());
        if let Some(UnderWay { waiting, .. }) = under_way {
            waiting.retain(|waiting| !waiting.is_closed());
            waiting.push(answer);
            return asker;
        }
        let names = self.clone();
        // Linux shows 15 characters of a name.
        let thread = thread::Builder::new().name("afterboot-names".to_owned());
        match thread.spawn(move || names.answer((name.as_str(), 0).to_socket_addrs().map(Iterator::collect)))
        {
            Ok(_) => state.under_way = Some(UnderWay { process: process::id(), waiting: vec![answer] }),
            Err(error) => {
                let why = format!("cannot spawn the thread for the name look-up: {error}");
                let _ = answer.send(Err(io::Error::new(error.kind(), why)));
            }
        }
        asker
    }

    fn answer(&self, found: Found) {
        let mut state = self.state();
        let waiting = state.under_way.take().map(|under_way| under_way.waiting).unwrap_or_default();
        let mut heard = false;
        for waiting in waiting {
            let found = match &found {
                Ok(found) => Ok(found.clone()),
                Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
            };
            heard |= waiting.send(found).is_ok();
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a thread without a runtime, whose answers age in real time"
        )]
        if let (Ok(found), false) = (found, heard) {
            state.late = Some((Instant::now(), found));
        }
    }
}

impl Service<Name> for Names {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<vec::IntoIter<SocketAddr>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let asked = self.ask(name);
        Box::pin(async move {
            let found = asked.await.unwrap_or_else(|_| Err(io::Error::other("the look-up broke off")));
            found.map(Vec::into_iter)
        })
    }
}
