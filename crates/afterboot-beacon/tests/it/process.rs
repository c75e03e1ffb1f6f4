//! Processes that end, and those that come after them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use afterboot_beacon::wire::{Counters, StreamId};
use tokio::time::Instant;

use crate::child::{Order, Process, Role, acked};
use crate::collector::ledger::Key;
use crate::collector::{Ledger, Mode, Server};
use crate::common::{
    LONG, Root, assert_clean, balance, balanced, drained, event, files, names_in, secs, until, until_arrived,
};

fn order(role: Role, server: &Server, root: &Root, name: &str) -> Order {
    Order { role, url: server.url(), root: root.path(), user: None, name: name.to_owned() }
}

/// A process that wrote so many durable events, each in a batch of its own, and was killed.
fn killed_writer(server: &Server, root: &Root, name: &str, events: u64) -> Vec<String> {
    let writer = Process::start(&order(Role::Write { threads: 1, events }, server, root, name));
    let mut said = Vec::new();
    while acked(&said).len() < events as usize {
        said.push(writer.next(LONG).expect("a receipt"));
    }
    writer.kill();
    acked(&said)
}

/// B1: the receipt is the end of the story for the process that got it.
#[test]
fn what_has_a_receipt_survives_an_exit_right_after_it() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let said = Process::start(&order(Role::Exit, &server, &root, "last words")).finish();
    assert_eq!(acked(&said), ["last words"]);
    assert_eq!(root.processes().len(), 1);
    server.set_mode(Mode::Ok);
    let next = root.beacon(&server).build().expect("a beacon");
    until_arrived(&server, &acked(&said));
    let counters = balance(next.shutdown_blocking(secs(5)));
    assert_eq!((counters.posted, counters.dropped_in_all(), counters.spooled), (0, 0, 0), "{counters:?}");
    assert!(counters.adopted >= 1);
    assert_clean(&server);
    assert_eq!(root.processes().len(), 0);
}

/// B15: a lock that lies there is no lock that is held, and one that is held keeps others out.
#[test]
fn the_lock_of_a_killed_process_holds_nobody_off_and_that_of_a_living_one_does() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let names = killed_writer(&server, &root, "dead", 3);
    let mut alive = Process::start(&order(Role::Write { threads: 1, events: 3 }, &server, &root, "alive"));
    for _ in 0..3 {
        alive.expect("ok");
    }
    let lock = root.processes()[0].join("lock");
    assert!(lock.exists());

    server.set_mode(Mode::Ok);
    let next = root.beacon(&server).build().expect("a beacon");
    until_arrived(&server, &names);
    until("end of the replay", || drained(&next));
    // The living one may send its own by now; nobody else does.
    let sender = next.stream();
    let sent = server.look(senders);
    let taken: Vec<&Key> =
        sent.iter().filter(|(_, senders)| senders.contains(&sender)).map(|(key, _)| key).collect();
    let named = server.look(names_in);
    for (name, key) in &named {
        assert!(
            !(name.starts_with("alive") && taken.contains(&key)),
            "{name} was taken from a living process"
        );
    }
    balance(next.shutdown_blocking(secs(5)));
    alive.tell("");
    alive.kill();
    assert_clean(&server);
}

/// Who sent each event, by the header that says so.
fn senders(ledger: &Ledger) -> BTreeMap<Key, BTreeSet<StreamId>> {
    let mut sent: BTreeMap<Key, BTreeSet<StreamId>> = BTreeMap::new();
    for seen in &ledger.requests {
        let (Some(head), Some(headers)) = (&seen.head, &seen.parsed) else { continue };
        for &seq in &seen.seqs {
            let key = Key { app: head.app.clone(), stream: head.stream, seq };
            sent.entry(key).or_default().insert(headers.sender);
        }
    }
    sent
}

/// B15: a row has one owner, whoever is faster.
#[test]
fn two_processes_that_start_at_the_same_moment_share_what_others_left_and_send_nothing_twice() {
    for round in 0..12 {
        let (server, root) = (Server::start(Mode::Refuse), Root::new());
        let mut names = Vec::new();
        for orphan in 0..1 + round % 3 {
            names.extend(killed_writer(&server, &root, &format!("o{orphan}"), 30));
        }
        server.set_mode(Mode::Ok);
        let mut pair = [0, 1].map(|_| Process::start(&order(Role::Deliver, &server, &root, "")));
        pair.iter().for_each(|process| drop(process.expect("ready")));
        pair.iter_mut().for_each(|process| process.tell("go"));
        let streams: BTreeSet<StreamId> =
            pair.iter().map(|process| process.expect("stream").parse().expect("a stream")).collect();
        assert_eq!(streams.len(), 2);
        until_arrived(&server, &names);
        let mut adopted = Vec::new();
        for process in pair {
            let said = process.finish();
            let left = said.iter().find_map(|line| line.strip_prefix("left ")).expect("its counters");
            let counters: Counters = serde_json::from_str(left).expect("counters");
            let counters = balance(counters);
            assert_eq!(counters.acked, counters.adopted, "{counters:?}");
            adopted.push(counters.adopted);
        }
        let (sent, duplicates) = server.look(|ledger| (senders(ledger), ledger.duplicates));
        for (key, by) in &sent {
            assert_eq!(by.len(), 1, "{key:?} was sent by {by:?} in round {round}");
        }
        assert_eq!(duplicates, 0);
        assert_eq!(adopted.iter().sum::<u64>(), sent.len() as u64);
        assert_clean(&server);
        assert_eq!(root.processes().len(), 0);
    }
}

/// B26: the stream is the beacon's, so that the same numbers of the same session are other events.
#[test]
fn after_a_restart_the_same_session_and_the_same_numbers_are_new_events() {
    let (server, root) = (Server::start(Mode::Ok), Root::new());
    let mut streams = BTreeSet::new();
    for run in 0..3 {
        let process = Process::start(&order(
            Role::Write { threads: 1, events: 20 },
            &server,
            &root,
            &format!("run{run}"),
        ));
        streams.insert(process.expect("stream"));
        let names: Vec<String> = (0..20).map(|_| process.expect("ok")).collect();
        until_arrived(&server, &names);
        process.kill();
    }
    assert_eq!(streams.len(), 3);
    let last = root.beacon(&server).build().expect("a beacon");
    balance(last.shutdown_blocking(secs(5)));
    assert_clean(&server);
    let ledger = server.ledger();
    let sessions: BTreeSet<_> = ledger.accepted.values().map(|stored| stored.session.clone()).collect();
    assert_eq!(sessions, BTreeSet::from([Some("s1".to_owned())]));
    let zeros = ledger.accepted.keys().filter(|key| key.seq == 0).count();
    assert_eq!(zeros, 3, "each run has a first event");
    assert_eq!(ledger.rejected.len(), 0);
}

/// B17: batches are rows, not files.
#[test]
fn a_process_has_one_database_whatever_the_number_of_its_batches() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let beacon = root.beacon(&server).batch_events(1).build().expect("a beacon");
    for round in 0..4 {
        let receipts: Vec<_> = (0..75)
            .map(|number| beacon.post("durable", &event(&format!("{round}-{number}"), None)).durable())
            .collect();
        for receipt in receipts {
            receipt.wait_blocking(LONG).expect("room on the disk");
        }
        let dirs = root.processes();
        assert_eq!(dirs.len(), 1);
        let mut files: Vec<String> = files(&dirs[0])
            .iter()
            .map(|file| file.file_name().unwrap_or_default().to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(files, ["alive", "lock", "spool.db", "spool.db-shm", "spool.db-wal"]);
        balanced(&beacon);
    }
    let counters = balance(beacon.shutdown_blocking(secs(5)));
    assert_eq!(counters.spooled, 300, "{counters:?}");
}

/// B16, B22: one budget for everything, and what it does not suffice for is on disk.
#[test]
fn a_shutdown_with_a_hung_server_and_many_batches_keeps_its_budget_and_spools_the_rest() {
    let (server, root) = (Server::start(Mode::Hung), Root::new());
    let beacon = root.beacon(&server).batch_events(5).build().expect("a beacon");
    let names: Vec<String> = (0..600).map(|number| format!("e{number}")).collect();
    // Once something is on disk the spool is open: opening it is not what is measured.
    beacon.post("durable", &event("first", None)).durable().wait_blocking(LONG).expect("room on the disk");
    for name in &names {
        beacon.post("click", &event(name, None));
    }
    balanced(&beacon);
    // A part of it is for the disk, which others keep busy as well.
    let (begun, budget) = (Instant::now(), secs(5));
    let counters = balance(beacon.shutdown_blocking(budget));
    let took = begun.elapsed();
    assert!(took <= budget + secs(1), "{took:?}");
    assert_eq!((counters.spooled, counters.queued, counters.in_flight), (601, 0, 0), "{counters:?}");
    assert_eq!(counters.dropped_in_all(), 0, "{counters:?}");
    beacon.post("click", &event("too late", None));
    assert_eq!(balanced(&beacon).dropped["closed"], 1);

    server.set_mode(Mode::Ok);
    let next = root.beacon(&server).build().expect("a beacon");
    until_arrived(&server, &names);
    balance(next.shutdown_blocking(secs(5)));
    assert_clean(&server);
    assert_eq!(root.processes().len(), 0);
}

/// B16: there is no time, so nothing is sent, and nothing waits for it.
#[test]
fn a_shutdown_without_any_time_answers_at_once_and_accounts_for_everything() {
    let (server, root) = (Server::start(Mode::Ok), Root::new());
    let beacon = root.beacon(&server).build().expect("a beacon");
    beacon.post("click", &event("a", None));
    let begun = Instant::now();
    let counters = balance(beacon.shutdown_blocking(Duration::ZERO));
    assert!(begun.elapsed() < secs(1), "{:?}", begun.elapsed());
    assert_eq!((counters.queued, counters.in_flight), (0, 0), "{counters:?}");
    assert_eq!(counters.posted, 1);
}
