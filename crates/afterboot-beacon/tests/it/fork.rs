//! A process that forks: the child has a stream, a thread and connections of its own, and none of its parent's events.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use afterboot_beacon::{Beacon, DeadLetters, Early, SpoolOptions};
use fork::Fork;

use crate::child::{Order, Process, Role, durable, say};
use crate::collector::{Mode, Server};
use crate::common::{
    LONG, Root, assert_clean, balance, drained, event, ms, names_in, secs, until, until_arrived,
};

fn forked() -> Option<i32> {
    match fork::fork().expect("a child") {
        Fork::Parent(child) => Some(child),
        Fork::Child => None,
    }
}

fn await_end(child: i32) {
    assert_eq!(fork::waitpid(child).expect("its end"), 0, "the forked child ended well");
}

/// What the process of the first test does.
pub(crate) fn program(order: &Order, forks: u64) {
    let beacon = order.beacon();
    say(&format!("stream {}", beacon.stream()));
    // A fork inside a call of SQLite leaves its locks taken in the child, which then has no disk: no matter of this test.
    beacon
        .post("durable", &event("first", None))
        .urgent()
        .durable()
        .wait_blocking(LONG)
        .expect("room on the disk");
    until("an idle disk", || drained(&beacon));
    thread::park_timeout(ms(100));
    for number in 0..20 {
        // Basic: they are still in memory at the first fork.
        beacon.post("click", &event(&format!("parent-{number}"), order.user.as_deref()));
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 0..2 {
            let (beacon, stop) = (&beacon, &stop);
            scope.spawn(move || {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    // Now and then one of them holds the lock of the parent's core when the process is forked.
                    beacon.post("click", &event(&format!("busy-{thread}-{number}"), order.user.as_deref()));
                    number += 1;
                    thread::park_timeout(ms(1));
                }
            });
        }
        for child in 0..forks {
            let Some(forked) = forked() else {
                for number in 0..3 {
                    beacon.post("click", &event(&format!("child-{child}-{number}"), None));
                }
                let flushed = beacon.flush_blocking(secs(10));
                say(&format!("child {} {} {}", beacon.stream(), flushed.complete, flushed.counters.posted));
                balance(beacon.shutdown_blocking(secs(5)));
                process::exit(0);
            };
            await_end(forked);
        }
        stop.store(true, Ordering::Relaxed);
    });
    let counters = balance(beacon.shutdown_blocking(secs(10)));
    say(&format!("left {} {}", counters.posted, counters.acked));
}

/// What the process of the second test does.
pub(crate) fn idle_program(order: &Order) {
    let beacon = order.beacon();
    beacon.post("durable", &event("parent", None)).durable().wait_blocking(LONG).expect("room on the disk");
    // A beacon makes a directory in it, which it removes again.
    let changed = || fs::metadata(&order.root).and_then(|root| root.modified()).expect("the spool's root");
    let before = changed();
    let Some(forked) = forked() else {
        drop(beacon);
        say(&format!("untouched {}", changed() == before));
        process::exit(0);
    };
    await_end(forked);
    let counters = balance(beacon.shutdown_blocking(secs(10)));
    say(&format!("left {} {}", counters.posted, counters.acked));
}

/// What the process of the tests of what a fork holds does.
pub(crate) fn held_program(order: &Order, events: u64, leaves: bool) {
    let beacon = order.beacon();
    for number in 0..events {
        durable(&beacon, &format!("durable-{number}"), None);
    }
    let Some(forked) = forked() else {
        say("forked");
        let mut line = String::new();
        let _ = io::stdin().read_line(&mut line);
        if !line.is_empty() {
            beacon.post("click", &event("child", None)).urgent();
            until("an empty beacon", || drained(&beacon) && beacon.counters().adopted == events);
            let counters = balance(beacon.shutdown_blocking(secs(10)));
            say(&format!("child {} {}", counters.posted, counters.acked));
        }
        process::exit(0);
    };
    if leaves {
        let counters = balance(beacon.shutdown_blocking(secs(1)));
        say(&format!("left {}", counters.spooled));
        process::exit(0);
    }
    await_end(forked);
    balance(beacon.shutdown_blocking(secs(10)));
}

static EARLY: Early = Early::new();

/// What the process of the tests of the queue before the beacon does.
pub(crate) fn early_program(order: &Order) {
    EARLY.post("early", &event("parent", None));
    assert_eq!(EARLY.len(), 1);
    let build = || {
        let builder = Beacon::builder("shop").endpoint(&order.url).spool(SpoolOptions::new(&order.root));
        builder.early(&EARLY).build().expect("a beacon")
    };
    let Some(forked) = forked() else {
        let before = EARLY.len();
        EARLY.post("early", &event("child", None));
        let beacon = build();
        let counters = balance(beacon.shutdown_blocking(secs(10)));
        say(&format!("child {before} {} {}", counters.posted, counters.acked));
        process::exit(0);
    };
    await_end(forked);
    let beacon = build();
    say(&format!("stream {}", beacon.stream()));
    let Some(forked) = self::forked() else {
        // The queue has a beacon: the child's own, from here on.
        EARLY.post("early", &event("late child", None));
        let counters = balance(beacon.shutdown_blocking(secs(10)));
        say(&format!("late {} {}", counters.posted, counters.acked));
        process::exit(0);
    };
    await_end(forked);
    let counters = balance(beacon.shutdown_blocking(secs(10)));
    say(&format!("left {} {}", counters.posted, counters.acked));
}

fn order(role: Role, server: &Server, root: &Root) -> Order {
    Order { role, url: server.url(), root: root.path(), user: None, name: String::new() }
}

/// Two processes never give the same key, and neither sends the other's events.
#[test]
fn forked_children_send_their_own_events_and_the_parent_its_own_once() {
    let (server, root) = (Server::start(Mode::Ok), Root::new());
    let process = Process::start(&order(Role::Fork { forks: 8 }, &server, &root));
    let parent = process.expect("stream");
    let mut streams = BTreeSet::from([parent.clone()]);
    for _ in 0..8 {
        let said = process.expect("child");
        let (stream, rest) = said.split_once(' ').expect("three words");
        assert_eq!(rest, "true 3");
        assert!(streams.insert(stream.to_owned()), "{stream} is somebody else's");
    }
    let left = process.expect("left");
    let (posted, acked) = left.split_once(' ').expect("two words");
    assert_eq!(posted, acked);
    process.finish();

    let children = (0..8).flat_map(|child| (0..3).map(move |number| format!("child-{child}-{number}")));
    let names: Vec<String> = (0..20).map(|number| format!("parent-{number}")).chain(children).collect();
    until_arrived(&server, &names);
    assert_clean(&server);
    let ledger = server.ledger();
    for (name, key) in names_in(&ledger) {
        assert_eq!(
            key.stream.to_string() == parent,
            !name.starts_with("child"),
            "{name} is numbered by {key:?}"
        );
    }
    for seen in &ledger.requests {
        let (head, headers) = (seen.head.as_ref().expect("a head"), seen.parsed.as_ref().expect("headers"));
        assert_eq!(head.stream, headers.sender, "nobody sends what another one numbered");
    }
    assert_eq!(ledger.duplicates, 0);
    until("an empty spool", || root.processes().is_empty());
}

/// A child that does not post is none of the beacon's business.
#[test]
fn a_forked_child_that_posts_nothing_drops_its_handle_without_starting_a_beacon() {
    let (server, root) = (Server::start(Mode::Ok), Root::new());
    let process = Process::start(&order(Role::ForkIdle, &server, &root));
    assert_eq!(process.expect("untouched"), "true");
    assert_eq!(process.expect("left"), "1 1");
    process.finish();
    assert_clean(&server);
    assert_eq!(server.look(|ledger| ledger.accepted.len()), 1);
    assert_eq!(root.processes().len(), 0);
}

fn durable_names(events: u64) -> Vec<String> {
    (0..events).map(|number| format!("durable-{number}")).collect()
}

/// B15: a child that was forked off has its parent's files open, and is no reason to leave them alone.
#[test]
fn what_a_killed_process_left_is_adopted_although_its_forked_child_lives() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let mut process = Process::start(&order(Role::ForkHeld { events: 10, leaves: false }, &server, &root));
    process.expect("forked");
    let lives = || {
        let described = DeadLetters::open(root.path()).and_then(|spool| spool.processes());
        described.expect("a spool").iter().map(|process| process.live).collect::<Vec<_>>()
    };
    assert_eq!(lives(), [true]);
    process.kill_alone();
    assert_eq!(lives(), [false]);
    server.set_mode(Mode::Ok);
    let heir = root.beacon(&server).build().expect("a beacon");
    until_arrived(&server, &durable_names(10));
    until("an empty beacon", || drained(&heir));
    assert_eq!(balance(heir.shutdown_blocking(secs(5))).adopted, 10);
    assert_eq!(root.processes().len(), 0);
    process.end();
    assert_clean(&server);
}

/// B15: nor is it where the process left in good order.
#[test]
fn what_a_process_left_is_adopted_although_its_forked_child_lives() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let process = Process::start(&order(Role::ForkHeld { events: 10, leaves: true }, &server, &root));
    process.expect("forked");
    assert_eq!(process.expect("left"), "10");
    server.set_mode(Mode::Ok);
    let heir = root.beacon(&server).build().expect("a beacon");
    until_arrived(&server, &durable_names(10));
    until("an empty beacon", || drained(&heir));
    assert_eq!(balance(heir.shutdown_blocking(secs(5))).adopted, 10);
    process.end();
    assert_eq!(root.processes().len(), 0);
}

/// B15: the child itself is as good an heir as any.
#[test]
fn a_forked_child_takes_over_what_its_killed_parent_left() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let mut process = Process::start(&order(Role::ForkHeld { events: 10, leaves: false }, &server, &root));
    process.expect("forked");
    process.kill_alone();
    server.set_mode(Mode::Ok);
    process.tell("go");
    assert_eq!(process.expect("child"), "1 11");
    process.end();
    assert_eq!(root.processes().len(), 0);
    assert_clean(&server);
    let arrived = server.look(names_in);
    assert_eq!(arrived.len(), 11);
    assert_ne!(arrived["child"].stream, arrived["durable-0"].stream);
}

/// B26: what was posted before the fork is the parent's, also where there was no beacon yet.
#[test]
fn what_was_posted_early_is_sent_by_the_process_that_posted_it() {
    let (server, root) = (Server::start(Mode::Ok), Root::new());
    let process = Process::start(&order(Role::ForkEarly, &server, &root));
    assert_eq!(process.expect("child"), "0 1 1");
    let parent = process.expect("stream");
    assert_eq!(process.expect("late"), "1 1");
    assert_eq!(process.expect("left"), "1 1");
    process.finish();
    assert_clean(&server);
    let arrived = server.look(names_in);
    assert_eq!(arrived.keys().collect::<Vec<_>>(), ["child", "late child", "parent"]);
    for (name, key) in &arrived {
        assert_eq!(key.stream.to_string() == parent, name == "parent", "{name}");
    }
}
