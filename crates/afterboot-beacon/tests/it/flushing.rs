//! A flush, and what was posted before it.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use afterboot_beacon::Beacon;
use afterboot_beacon::testing::{Reply, ScriptedTransport};
use tokio::runtime::Handle;

use crate::collector::{Mode, Server};
use crate::common::{LONG, assert_clean, balance, event, ms, names_in, secs};

/// So many events does each thread post while one flush goes on, at most.
const AT_A_FLUSH: u64 = 60;

/// Ends the threads that post.
struct Over<'a>(&'a AtomicU64);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(u64::MAX, Ordering::Relaxed);
    }
}

/// B3: also while others post.
#[test]
fn what_was_posted_before_a_flush_has_arrived_when_it_is_complete() {
    let server = Server::start(Mode::Slow(ms(3)));
    let beacon = Beacon::builder("shop").endpoint(&server.url()).batch_events(20).build().expect("a beacon");
    let posted = Mutex::new(BTreeSet::new());
    let (mut flushes, round) = (0, AtomicU64::new(0));
    thread::scope(|scope| {
        // Also where an assertion fails: the others are waited for.
        let over = Over(&round);
        for thread in 0..8 {
            let (beacon, posted, round) = (&beacon, &posted, &round);
            scope.spawn(move || {
                let mut number = 0;
                loop {
                    let now = round.load(Ordering::Relaxed);
                    if now == u64::MAX {
                        return;
                    }
                    // A machine that is slow must not have more and more to do for each flush.
                    if number >= (now + 1) * AT_A_FLUSH {
                        thread::park_timeout(ms(1));
                        continue;
                    }
                    let name = format!("{thread}-{number}");
                    beacon.post("click", &event(&name, None));
                    posted.lock().expect("no panic").insert(name);
                    number += 1;
                    thread::park_timeout(ms(1));
                }
            });
        }
        while flushes < 25 {
            let before = posted.lock().expect("no panic").clone();
            let flushed = beacon.flush_blocking(LONG);
            assert!(flushed.complete, "{flushed:?}");
            balance(flushed.counters);
            let arrived = server.look(|ledger| names_in(ledger).into_keys().collect::<BTreeSet<_>>());
            let lacking: Vec<&String> = before.difference(&arrived).collect();
            assert!(lacking.is_empty(), "flush {flushes}: {:?} and others of {}", lacking[0], before.len());
            flushes += 1;
            round.fetch_add(1, Ordering::Relaxed);
        }
        drop(over);
    });
    balance(beacon.shutdown_blocking(secs(10)));
    assert_clean(&server);
}

/// B3: the halves of a batch that was too large have one place in the line, and both must be through.
#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_every_part_of_a_batch_that_was_split() {
    let server = ScriptedTransport::new(|seen| match seen.batch.events.len() {
        4.. => Reply::Status(413),
        // The mark that ends the stream.
        0 => Reply::Accept,
        _ if seen.batch.events[0].seq == 0 => Reply::Accept,
        _ => Reply::After(secs(2), Box::new(Reply::Accept)),
    });
    let beacon =
        Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).build().unwrap();
    for number in 0..4 {
        beacon.post("click", &number);
    }
    let flushed = beacon.flush(secs(10)).await;
    assert!(flushed.complete);
    assert_eq!(balance(flushed.counters).acked, 4);
    let counters = balance(beacon.shutdown(secs(10)).await);
    assert_eq!((counters.acked, counters.dropped_in_all()), (4, 0), "{counters:?}");
}
