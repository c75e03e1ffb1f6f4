//! What lies on disk is sent when it may be, under a paused clock.

use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport, Seen};
use afterboot_beacon::{Beacon, BeaconBuilder, BeaconEvent, EndpointState, Next};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::common::{Root, balance, balanced, ms, secs};

fn beacon(server: &ScriptedTransport, root: &Root) -> BeaconBuilder {
    let builder = Beacon::builder("shop").transport(server.clone()).spool(root.options());
    builder.runtime(Handle::current()).wall_from_tokio().seed(7)
}

/// Leaves so many batches of one event under this root, of this user.
async fn left_behind(root: &Root, events: usize, user: Option<&str>) {
    let broken = ScriptedTransport::new(|_| Reply::Broken);
    let beacon = beacon(&broken, root).batch_events(1).build().unwrap();
    beacon.set_user(user);
    for number in 0..events {
        beacon.post("click", &number);
    }
    let counters = balance(beacon.shutdown(secs(5)).await);
    assert_eq!(counters.spooled, events as u64, "{counters:?}");
}

/// Whoever is quiet after a failure gets its backlog through all the same: something on disk is the probe then.
#[tokio::test(start_paused = true)]
async fn a_backlog_is_sent_when_the_server_is_back_although_nothing_new_is_posted() {
    let (root, begun) = (Root::new(), Instant::now());
    let server =
        ScriptedTransport::new(
            move |_| {
                if begun.elapsed() < secs(100) { Reply::Status(503) } else { Reply::Accept }
            },
        );
    let beacon = beacon(&server, &root).build().unwrap();
    for number in 0..5 {
        beacon.post("durable", &number).durable().await.unwrap();
        sleep(ms(300)).await;
    }
    sleep(secs(60)).await;
    assert_eq!(balanced(&beacon).spooled, 5, "{:?}", beacon.counters());
    sleep(secs(40 + 32 + 31 + 31)).await;
    assert_eq!(balanced(&beacon).acked, 5, "{:?}", beacon.counters());
    assert!(server.requests() < 20, "{} requests", server.requests());
}

/// B15: the look for what others left is put off by a failure, not called off.
#[tokio::test(start_paused = true)]
async fn what_others_left_is_found_after_a_failure_at_the_start() {
    let root = Root::new();
    left_behind(&root, 3, None).await;
    let begun = Instant::now();
    let server =
        ScriptedTransport::new(
            move |_| {
                if begun.elapsed() < secs(2) { Reply::Status(503) } else { Reply::Accept }
            },
        );
    let beacon = beacon(&server, &root).build().unwrap();
    beacon.post("click", "now").urgent();
    sleep(secs(45)).await;
    let counters = balanced(&beacon);
    assert_eq!((counters.adopted, counters.acked), (3, 4), "{counters:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_spooled_without_a_network_is_sent_when_it_is_back() {
    let (server, root) = (ScriptedTransport::accepting(), Root::new());
    let beacon = beacon(&server, &root).build().unwrap();
    sleep(secs(40)).await;
    beacon.notify_offline();
    beacon.post("durable", &1).durable().await.unwrap();
    beacon.post("click", &2);
    sleep(secs(60)).await;
    assert_eq!((balanced(&beacon).spooled, server.requests()), (2, 0));
    beacon.notify_online();
    sleep(secs(31)).await;
    assert_eq!(balanced(&beacon).acked, 2, "{:?}", beacon.counters());
}

/// B18: a row that was read for one who goes meanwhile goes back, and the other one's rows are looked for.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_user_while_rows_are_read_loses_neither_ones_rows() {
    for late in 0..40 {
        let (server, root) = (ScriptedTransport::accepting(), Root::new());
        for user in [None, Some("a"), Some("b")] {
            left_behind(&root, 2, user).await;
        }
        let beacon = beacon(&server, &root).replay_spread(Duration::ZERO).user("a").build().unwrap();
        // The disk's calls end in real time: the change falls into another stretch of them each time.
        for _ in 0..late * 5 {
            tokio::task::yield_now().await;
        }
        // What was taken to be sent is under way, though the server may not have seen it yet.
        let (before, under_way) = (server.requests(), balanced(&beacon).in_flight);
        beacon.set_user(Some("b"));
        sleep(secs(5)).await;
        let seen = server.seen();
        let of = |user: &str, seen: &[Seen]| -> usize {
            let of_user = seen.iter().filter(|seen| seen.batch.head.user.as_deref() == Some(user));
            of_user.map(|seen| seen.batch.events.len()).sum()
        };
        let late = of("a", &seen[before..]) as u64;
        assert!(late <= under_way, "{late} sent after a had gone, {under_way} were under way");
        assert_eq!(of("b", &seen), 2, "{:?}", beacon.counters());
        beacon.set_user(Some("a"));
        sleep(secs(5)).await;
        assert_eq!(balanced(&beacon).acked, 6, "{:?}", beacon.counters());
    }
}

/// B12: replicas that restart together do not send their backlogs together.
#[tokio::test(start_paused = true)]
async fn the_backlogs_of_many_beacons_begin_spread_over_the_replay_spread() {
    let mut running = Vec::new();
    for seed in 0..40 {
        let (server, root) = (ScriptedTransport::accepting(), Root::new());
        left_behind(&root, 2, None).await;
        running.push((seed, server, root));
    }
    let begun = Instant::now();
    let beacons: Vec<Beacon> = running
        .iter()
        .map(|(seed, server, root)| beacon(server, root).seed(*seed).build().unwrap())
        .collect();
    sleep(secs(31)).await;
    let starts: Vec<Duration> = running.iter().map(|(_, server, _)| server.seen()[0].at - begun).collect();
    for third in 0..3 {
        let range = secs(10 * third)..=secs(10 * third + 10) + ms(10);
        let within = starts.iter().filter(|start| range.contains(start)).count();
        assert!((5..=25).contains(&within), "{within} of 40 begin within {range:?}: {starts:?}");
    }
    for beacon in &beacons {
        assert_eq!(balanced(beacon).acked, 2);
    }
}

/// B12: neither do they after the server was away for all of them.
#[tokio::test(start_paused = true)]
async fn the_backlogs_of_many_beacons_begin_spread_after_a_recovery_too() {
    let begun = Instant::now();
    let mut running = Vec::new();
    for seed in 0..30 {
        let server = ScriptedTransport::new(move |seen| {
            if begun.elapsed() >= secs(60) || seen.batch.events.is_empty() {
                Reply::Accept
            } else {
                Reply::Status(503)
            }
        });
        let root = Root::new();
        let beacon = beacon(&server, &root).seed(seed).batch_events(2).build().unwrap();
        for number in 0..8 {
            beacon.post("click", &number);
        }
        running.push((server, beacon, root));
    }
    sleep(secs(59)).await;
    for (server, beacon, _) in &running {
        assert_eq!(balanced(beacon).spooled, 8, "{:?}", beacon.counters());
        let server = server.clone();
        server.set_script(|_| Reply::Accept);
        beacon.notify_online();
        // One that is here first: the recovery is at the same moment for all.
        beacon.post("crash", "probe").urgent();
    }
    let back = Instant::now();
    sleep(secs(40)).await;
    let mut starts = Vec::new();
    for (server, beacon, _) in &running {
        assert_eq!(balanced(beacon).acked, 9, "{:?}", beacon.counters());
        let seen = server.seen();
        let backlog = seen.iter().find(|seen| seen.at >= back && seen.batch.events[0].route == "click");
        starts.push(backlog.expect("a backlog").at - back);
    }
    starts.sort();
    assert!(starts[29] - starts[0] > secs(15), "{starts:?}");
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] < secs(12)), "{starts:?}");
}

/// Rows of somebody else are no reason to look at the disk again and again.
#[tokio::test(start_paused = true)]
async fn rows_that_may_not_be_sent_keep_nobody_busy() {
    let root = Root::new();
    left_behind(&root, 3, Some("a")).await;
    let server = ScriptedTransport::new(|_| Reply::Status(503));
    let beacon = beacon(&server, &root).replay_spread(Duration::ZERO).user("a").build().unwrap();
    sleep(secs(3)).await;
    beacon.set_user(Some("b"));
    sleep(secs(60)).await;
    let before = server.requests();
    // Time goes on only where nobody is busy.
    sleep(secs(7200)).await;
    assert_eq!(server.requests(), before);
    let counters = balanced(&beacon);
    assert_eq!((counters.adopted, counters.spooled, counters.acked), (3, 3, 0), "{counters:?}");
    timeout(secs(5), beacon.shutdown(secs(2))).await.unwrap();
}

/// B12: fifty rows at a time, and no more than what is under way once the server fails.
#[tokio::test(start_paused = true)]
async fn a_backlog_comes_back_fifty_rows_at_a_time_and_stops_at_the_first_failure() {
    let root = Root::new();
    left_behind(&root, 120, None).await;
    let mut asked = 0;
    let server = ScriptedTransport::new(move |_| {
        asked += 1;
        let reply = if asked == 20 { Reply::Status(503) } else { Reply::Accept };
        Reply::After(ms(10), Box::new(reply))
    });
    let beacon = beacon(&server, &root).replay_spread(Duration::ZERO).build().unwrap();
    let mut steps = beacon.events();
    while beacon.health().endpoint == EndpointState::Healthy {
        sleep(ms(1)).await;
    }
    sleep(ms(500)).await;
    // The twentieth failed, and one beside it was under way.
    assert!((20..=21).contains(&server.requests()), "{}", server.requests());
    let counters = balanced(&beacon);
    assert_eq!((counters.acked + counters.spooled, counters.queued), (120, 0), "{counters:?}");
    sleep(secs(10)).await;
    assert_eq!(balanced(&beacon).acked, 120);
    let mut read = Vec::new();
    while let Some(Next::Event(step)) = steps.try_next() {
        if let BeaconEvent::Replaying { events, .. } = step {
            read.push(events);
        }
    }
    // The look that the failure cut short, the one that found the probe, and the hundred less that one.
    assert_eq!(read, [50, 50, 50, 49]);
}
