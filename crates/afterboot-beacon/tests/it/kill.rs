//! kill -9 at random moments: what has its receipt arrives.

use std::thread;
use std::time::Duration;

use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng, TryRng};
use tokio::time::Instant;

use crate::child::{Order, Process, Role, acked};
use crate::collector::{Mode, Server};
use crate::common::{
    LONG, Root, assert_clean, balance, drained, event, ms, names_in, secs, until, until_arrived,
};

const ROUNDS: u64 = 32;
const ROUNDS_WITH_RECEIPTS: usize = 20;

fn seed() -> u64 {
    let seed = SysRng.try_next_u64().expect("randomness");
    // Seen where the test fails.
    #[expect(clippy::print_stdout, reason = "the seed of a failure")]
    {
        println!("seed {seed}");
    }
    seed
}

fn order(role: Role, server: &Server, root: &Root, name: String) -> Order {
    Order { role, url: server.url(), root: root.path(), user: Some("u1".to_owned()), name }
}

/// Kills it at some moment, which is mostly one after its first receipts. What has a receipt.
fn killed_at_random(process: Process, rng: &mut StdRng) -> Vec<String> {
    let mut said = Vec::new();
    let receipts = rng.random_range(0..40);
    let deadline = Instant::now() + LONG;
    if rng.random_ratio(4, 5) {
        while acked(&said).len() < receipts && Instant::now() < deadline {
            said.extend(process.next(LONG));
        }
        thread::park_timeout(Duration::from_micros(rng.random_range(0..5_000)));
    } else {
        thread::park_timeout(Duration::from_micros(rng.random_range(0..60_000)));
    }
    said.extend(process.kill());
    acked(&said)
}

fn rounds(during: Mode) {
    let mut rng = StdRng::seed_from_u64(seed());
    let (server, root) = (Server::start(Mode::Ok), Root::new());
    let mut with_receipts = 0;
    for round in 0..ROUNDS {
        server.set_mode(during.clone());
        let role = Role::Write { threads: 3, events: 1_000_000 };
        let writer = Process::start(&order(role, &server, &root, format!("{round}")));
        let durable = killed_at_random(writer, &mut rng);
        with_receipts += usize::from(!durable.is_empty());

        server.set_mode(Mode::Ok);
        let next = root.beacon(&server).user("u1").build().expect("a beacon");
        until_arrived(&server, &durable);
        let counters = balance(next.shutdown_blocking(secs(5)));
        assert_eq!((counters.dropped_in_all(), counters.dead, counters.posted), (0, 0, 0), "{counters:?}");
        assert_clean(&server);
    }
    assert!(with_receipts >= ROUNDS_WITH_RECEIPTS, "{with_receipts} rounds had receipts");
    let last = root.beacon(&server).user("u1").build().expect("a beacon");
    // From here on it has a directory, and it has looked through all others when that is the only one.
    last.post("durable", &event("last", None)).durable().wait_blocking(LONG).expect("room on the disk");
    until("an empty spool", || root.processes().len() == 1 && drained(&last));
    balance(last.shutdown_blocking(secs(5)));
    assert_eq!(root.processes().len(), 0);
}

/// B1, B15: the next process finds the lock of a dead one and takes its events over.
#[test]
fn what_has_a_receipt_survives_kill_9_while_the_server_is_down() {
    rounds(Mode::Refuse);
}

/// B1, B15: some of it was sent before, and its rows were or were not deleted.
#[test]
fn what_has_a_receipt_survives_kill_9_while_it_is_being_sent() {
    rounds(Mode::Ok);
}

/// B15: rows are committed here before they are deleted there, so that a crash between the two leaves two of them.
#[test]
fn a_process_that_is_killed_while_it_adopts_loses_nothing() {
    let mut rng = StdRng::seed_from_u64(seed());
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let mut durable = Vec::new();
    for writer in 0..2 {
        let role = Role::Write { threads: 4, events: 150 };
        let process = Process::start(&order(role, &server, &root, format!("w{writer}")));
        let mut said = Vec::new();
        while acked(&said).len() < 300 {
            said.push(process.next(LONG).expect("a receipt"));
        }
        said.extend(process.kill());
        durable.extend(acked(&said));
    }
    for round in 0..12 {
        // Delivering meanwhile, or only moving rows.
        server.set_mode(if round < 6 { Mode::Refuse } else { Mode::Slow(ms(2)) });
        let mut adopter = Process::start(&order(Role::Deliver, &server, &root, String::new()));
        adopter.expect("ready");
        adopter.tell("go");
        adopter.expect("stream");
        thread::park_timeout(Duration::from_micros(rng.random_range(0..40_000)));
        adopter.kill();
    }
    server.set_mode(Mode::Ok);
    let last = root.beacon(&server).user("u1").build().expect("a beacon");
    until_arrived(&server, &durable);
    until("an empty spool", || drained(&last));
    balance(last.shutdown_blocking(secs(5)));
    assert_clean(&server);
    assert!(server.look(|ledger| names_in(ledger).len()) >= durable.len());
    assert_eq!(root.processes().len(), 0);
}
