//! Calls from odd places.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::{Beacon, Early, Request, Sending, SpoolOptions, Token, Transport};
use serde::{Serialize, Serializer};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Runs it on a thread, which has to end.
fn bounded(what: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        what();
        let _ = done.send(());
    });
    match is_done.recv_timeout(secs(20)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("no end"),
        _ => thread.join().expect("no panic"),
    }
}

struct Panics;
impl Serialize for Panics {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("while encoding")
    }
}

struct PostsOnDrop(Beacon);
impl Drop for PostsOnDrop {
    fn drop(&mut self) {
        self.0.post("dropped", &1).merge_by("key");
        self.0.post("dropped", &Panics);
        drop(self.0.post("dropped", &1).durable());
    }
}

/// B6: while a panic unwinds.
#[test]
fn a_post_from_a_destructor_is_a_post() {
    bounded(|| {
        let beacon = Beacon::builder("shop").transport(ScriptedTransport::accepting()).build().unwrap();
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _posts = PostsOnDrop(beacon.clone());
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        let counters = beacon.shutdown_blocking(secs(5));
        assert!(counters.balances(), "{counters:?}");
        assert_eq!((counters.posted, counters.acked, counters.dropped["unencodable"]), (3, 2, 1));
    });
}

/// Does all that a handle can do each time it is asked to send.
#[derive(Debug)]
struct Meddles {
    inner: ScriptedTransport,
    beacon: Arc<Mutex<Option<Beacon>>>,
    calls: AtomicU64,
}

impl Transport for Meddles {
    fn send(&self, request: Request) -> Sending {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let beacon = self.beacon.lock().unwrap().clone();
        if let (Some(beacon), 0..20) = (&beacon, call) {
            beacon.post("meddled", &call).urgent();
            beacon.set_user(Some(if call.is_multiple_of(2) { "a" } else { "b" }));
            beacon.notify_online();
            assert!(beacon.counters().balances());
        }
        // The last handle may go here.
        drop(self.beacon.lock().unwrap().take_if(|_| call == 20));
        assert!(!call.is_multiple_of(3), "a transport that panics");
        self.inner.send(request)
    }
}

/// B2, B4: a transport that posts, changes the user, panics and drops the last handle.
#[test]
fn a_transport_may_meddle() {
    bounded(|| {
        let (server, slot) = (ScriptedTransport::accepting(), Arc::new(Mutex::new(None)));
        let transport =
            Meddles { inner: server.clone(), beacon: Arc::clone(&slot), calls: AtomicU64::new(0) };
        let beacon = Beacon::builder("shop").transport(transport).build().unwrap();
        beacon.post("first", &0).urgent();
        *slot.lock().unwrap() = Some(beacon);
        for _ in 0..2000 {
            if slot.lock().unwrap().is_none() {
                return;
            }
            thread::park_timeout(Duration::from_millis(5));
            if let Some(beacon) = &*slot.lock().unwrap() {
                beacon.post("more", &0).urgent();
                beacon.notify_online();
            }
        }
        panic!("{} requests", server.requests());
    });
}

/// B5, B6: a token that never comes, panics, or comes from a closure that posts and lets go of the last handle.
#[tokio::test(start_paused = true)]
async fn a_token_may_take_its_time() {
    let server = ScriptedTransport::accepting();
    let slot: Arc<Mutex<Option<Beacon>>> = Arc::default();
    let (calls, mine) = (Arc::new(AtomicU64::new(0)), Arc::clone(&slot));
    let beacon = Beacon::builder("shop")
        .transport(server.clone())
        .runtime(Handle::current())
        .wall_from_tokio()
        .token_from(move || {
            let call = calls.fetch_add(1, Ordering::Relaxed);
            if let Some(beacon) = &*mine.lock().unwrap() {
                beacon.post("asked", &call);
            }
            assert!(call != 1, "a closure that panics");
            let mine = Arc::clone(&mine);
            async move {
                match call {
                    0 => std::future::pending().await,
                    2 => panic!("a future that panics"),
                    3 => drop(mine.lock().unwrap().take()),
                    _ => {}
                }
                Some(Token::new("secret"))
            }
        })
        .build()
        .unwrap();
    *slot.lock().unwrap() = Some(beacon.clone());
    beacon.post("first", &0);
    sleep(secs(60)).await;
    let counters = beacon.counters();
    assert_eq!((counters.posted, counters.acked), (5, 5), "{counters:?}");
    assert!(!format!("{beacon:?} {:?}", beacon.health()).contains("secret"));
}

/// B2: the shortest and the longest time that there is.
#[tokio::test(start_paused = true)]
async fn every_call_takes_every_time() {
    let folder = tempfile::tempdir().unwrap();
    for reply in [Reply::Accept, Reply::Hang] {
        let script = reply.clone();
        let beacon = Beacon::builder("shop")
            .transport(ScriptedTransport::new(move |_| script.clone()))
            .spool(SpoolOptions::new(folder.path().join("spool")))
            .runtime(Handle::current())
            .wall_from_tokio()
            .request_time_limit(Duration::MAX)
            .basic_delay(Duration::MAX)
            .expiry(Duration::MAX)
            .replay_spread(Duration::MAX)
            .build()
            .unwrap();
        for keep in [Duration::ZERO, Duration::MAX] {
            beacon.post("a", &1).expiry(keep).delay(Duration::MAX);
            beacon.post("a", &1).expiry(keep).delay(Duration::ZERO).merge_by("");
        }
        let hangs = matches!(reply, Reply::Hang);
        assert_eq!(timeout(secs(3600), beacon.flush(Duration::MAX)).await.is_err(), hangs);
        assert!(timeout(secs(3600), beacon.flush(Duration::ZERO)).await.is_ok());
        assert!(timeout(secs(3600), beacon.checkpoint(Duration::ZERO)).await.is_ok());
        beacon.post("a", &1);
        assert_eq!(timeout(secs(3600), beacon.checkpoint(Duration::MAX)).await.is_err(), hangs);
        assert!(timeout(secs(1), beacon.shutdown(Duration::ZERO)).await.is_ok_and(|left| left.balances()));
        assert!(timeout(secs(1), beacon.shutdown(Duration::MAX)).await.is_ok_and(|left| left.balances()));
    }
}

static EARLY: Early = Early::new();

/// B6: nothing is lost or overtaken between the queue and the beacon, from however many threads.
#[test]
fn an_early_queue_is_taken_over_while_many_threads_post() {
    bounded(|| {
        let server = ScriptedTransport::accepting();
        let posting: Vec<_> = (0..4)
            .map(|thread| {
                thread::spawn(move || {
                    for number in 0..200 {
                        EARLY.post("early", &(thread, number));
                    }
                })
            })
            .collect();
        let beacon = Beacon::builder("shop").transport(server.clone()).early(&EARLY).build().unwrap();
        posting.into_iter().for_each(|thread| thread.join().unwrap());
        let counters = beacon.shutdown_blocking(secs(5));
        assert_eq!((counters.posted, counters.acked), (800, 800), "{counters:?}");
        let mut last = [-1; 4];
        for event in server.seen().iter().flat_map(|seen| &seen.batch.events) {
            let (thread, number): (usize, i32) = serde_json::from_str(event.data.get()).unwrap();
            assert!(last[thread] < number, "thread {thread}: {number} after {}", last[thread]);
            last[thread] = number;
        }
    });
}
