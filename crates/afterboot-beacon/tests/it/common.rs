//! What the tests of processes and of delivery share.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use afterboot_beacon::wire::Counters;
use afterboot_beacon::{Beacon, BeaconBuilder, SpoolOptions};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::collector::ledger::Key;
use crate::collector::{Ledger, Server};

/// What only a broken run waits for.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The counters, which balance at every moment.
pub(crate) fn balanced(beacon: &Beacon) -> Counters {
    balance(beacon.counters())
}

pub(crate) fn balance(counters: Counters) -> Counters {
    assert!(counters.balances(), "{counters:?}");
    counters
}

/// Is everything that the beacon knows of at the server?
pub(crate) fn drained(beacon: &Beacon) -> bool {
    let counters = balanced(beacon);
    counters.spooled + counters.queued + counters.in_flight == 0
}

/// A folder that processes spool under.
#[derive(Debug)]
pub(crate) struct Root(TempDir);

impl Root {
    pub(crate) fn new() -> Root {
        Root(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("spool")
    }

    pub(crate) fn options(&self) -> SpoolOptions {
        SpoolOptions::new(self.path())
    }

    /// A beacon over it that sends to this server.
    pub(crate) fn beacon(&self, server: &Server) -> BeaconBuilder {
        Beacon::builder("shop").endpoint(&server.url()).spool(self.options()).replay_spread(Duration::ZERO)
    }

    /// The directories of processes, living or not.
    pub(crate) fn processes(&self) -> Vec<PathBuf> {
        let dirs = files(&self.path()).into_iter();
        dirs.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("p-")))
            .collect()
    }
}

pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// What a test posts: a name that no other event has, and who was there.
pub(crate) fn event(name: &str, user: Option<&str>) -> Value {
    json!({ "name": name, "user": user })
}

/// Waits on this thread until something holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < deadline, "no {what} within {LONG:?}");
        thread::park_timeout(ms(3));
    }
}

/// Waits until the server has as many events as these, by name, and says what it lacks if it never does.
pub(crate) fn until_arrived(server: &Server, names: &[String]) {
    let deadline = Instant::now() + LONG;
    loop {
        let lacking = server.look(|ledger| {
            let arrived = names_in(ledger);
            names.iter().filter(|name| !arrived.contains_key(*name)).cloned().collect::<Vec<_>>()
        });
        if lacking.is_empty() {
            return;
        }
        let summary = || server.look(Ledger::summary);
        assert!(
            Instant::now() < deadline,
            "{} never came, as {:?}: {}",
            lacking.len(),
            lacking[0],
            summary()
        );
        thread::park_timeout(ms(3));
    }
}

/// The accepted events by name. A name under two keys is an event that was numbered twice.
pub(crate) fn names_in(ledger: &Ledger) -> BTreeMap<String, Key> {
    let mut names = BTreeMap::new();
    for (key, stored) in &ledger.accepted {
        let Some(name) = stored.data["name"].as_str() else { continue };
        let before = names.insert(name.to_owned(), key.clone());
        assert_eq!(before, None, "{name} has two numbers, the other one is {key:?}");
    }
    names
}

/// Nothing broke the contract, no key was given twice, and every event came under the user who was there.
pub(crate) fn assert_clean(server: &Server) {
    let ledger = server.ledger();
    assert_eq!(ledger.wrong, [""; 0]);
    assert_eq!(ledger.conflicts, []);
    for (key, stored) in &ledger.accepted {
        if let Some(named) = stored.data.get("user") {
            assert_eq!(stored.user.as_deref(), named.as_str(), "{key:?} came under another user");
        }
    }
    names_in(&ledger);
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// An executor that knows nothing of tokio.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let deadline = Instant::now() + LONG;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(Instant::now() < deadline, "the future is still pending after {LONG:?}");
        thread::park_timeout(secs(1));
    }
}
