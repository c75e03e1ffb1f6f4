//! Each event leaves under the user who was there when it was posted, and under nobody else.

use crate::child::{Order, Process, Role, acked};
use crate::collector::{Mode, Server};
use crate::common::{
    LONG, Root, assert_clean, balance, balanced, event, ms, names_in, secs, until, until_arrived,
};

fn killed_with_users(server: &Server, root: &Root, name: &str) -> Vec<String> {
    let order = Order {
        role: Role::Users { events: 7 },
        url: server.url(),
        root: root.path(),
        user: None,
        name: name.to_owned(),
    };
    let process = Process::start(&order);
    let mut said = Vec::new();
    while said.last().is_none_or(|line| line != "done") {
        said.push(process.next(LONG).expect("a receipt"));
    }
    process.kill();
    acked(&said)
}

/// B18: rows of somebody who is not there stay where they are, across processes.
#[test]
fn after_a_restart_only_the_rows_of_who_is_there_and_of_nobody_are_sent() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    let names = killed_with_users(&server, &root, "x");
    assert_eq!(names.len(), 21);
    let of = |user: &str| -> Vec<String> {
        names.iter().filter(|name| name.starts_with(&format!("x-{user}-"))).cloned().collect()
    };
    server.set_mode(Mode::Ok);
    let arrived = || server.look(|ledger| names_in(ledger).into_keys().collect::<Vec<_>>());

    let as_b = root.beacon(&server).user("b").build().expect("a beacon");
    until_arrived(&server, &[of("b"), of("nobody")].concat());
    // A second look at the disk, after the first one's rows are through.
    as_b.post("durable", &event("last of b", Some("b")))
        .urgent()
        .durable()
        .wait_blocking(LONG)
        .expect("room");
    until_arrived(&server, &["last of b".to_owned()]);
    let counters = balance(as_b.shutdown_blocking(secs(5)));
    assert_eq!(counters.adopted, 14, "{counters:?}");
    assert_eq!(arrived().len(), 15, "{:?}", arrived());
    assert_eq!(root.processes().len(), 1, "the rows of a are still there");

    let as_nobody = root.beacon(&server).build().expect("a beacon");
    as_nobody.post("click", &event("nobody again", None)).urgent();
    until_arrived(&server, &["nobody again".to_owned()]);
    balance(as_nobody.shutdown_blocking(secs(5)));
    assert_eq!(arrived().len(), 16, "{:?}", arrived());

    let as_a = root.beacon(&server).user("a").build().expect("a beacon");
    until_arrived(&server, &names);
    balance(as_a.shutdown_blocking(secs(5)));
    assert_clean(&server);
    assert_eq!(root.processes().len(), 0);
}

/// B18: the rows of one who comes back within the same process are sent then.
#[test]
fn rows_wait_for_their_user_within_a_process_too() {
    let (server, root) = (Server::start(Mode::Refuse), Root::new());
    killed_with_users(&server, &root, "x");
    server.set_mode(Mode::Ok);
    let beacon = root.beacon(&server).user("b").build().expect("a beacon");
    until("rows of b and of nobody", || balanced(&beacon).acked == 14);
    beacon.set_user(Some("c"));
    beacon.post("click", &event("of c", Some("c"))).urgent();
    until_arrived(&server, &["of c".to_owned()]);
    assert_eq!(balanced(&beacon).adopted, 14);
    beacon.set_user(Some("a"));
    until("rows of a", || balanced(&beacon).acked == 22);
    let counters = balance(beacon.shutdown_blocking(secs(5)));
    assert_eq!((counters.adopted, counters.posted, counters.spooled), (21, 1, 0), "{counters:?}");
    assert_clean(&server);
}

/// B18: whatever fails meanwhile.
#[test]
fn users_that_change_at_every_turn_are_told_apart_through_failures_and_the_spool() {
    let (server, root) = (Server::start(Mode::Flap(2)), Root::new());
    let users = [Some("a"), Some("b"), None, Some("c")];
    let mut names = Vec::new();
    for run in 0..2 {
        let beacon = root.beacon(&server).batch_events(3).user("a").build().expect("a beacon");
        for number in 0..120 {
            let user = users[number / 4 % users.len()];
            beacon.set_user(user);
            let (name, durable) = (format!("{run}-{number}"), number % 3 == 0);
            let event = event(&name, user);
            let post = beacon.post("click", &event);
            if durable {
                drop(post.durable());
            } else {
                post.urgent();
            }
            names.push(name);
            if number % 30 == 29 {
                beacon.notify_online();
                let _ = beacon.flush_blocking(ms(20));
            }
            balanced(&beacon);
        }
        // The rest goes to the disk, for which a slow one has time enough.
        beacon.notify_offline();
        let counters = balance(beacon.shutdown_blocking(LONG));
        assert_eq!(counters.dropped_in_all(), 0, "{counters:?}");
    }
    server.set_mode(Mode::Ok);
    let beacon = root.beacon(&server).build().expect("a beacon");
    for user in users {
        beacon.set_user(user);
        let of_user: Vec<String> = names
            .iter()
            .enumerate()
            .filter(|(index, _)| users[index % 120 / 4 % users.len()] == user)
            .map(|(_, name)| name.clone())
            .collect();
        until_arrived(&server, &of_user);
    }
    balance(beacon.shutdown_blocking(secs(5)));
    assert_clean(&server);
    assert_eq!(root.processes().len(), 0);
}
