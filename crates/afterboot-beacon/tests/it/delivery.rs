//! Nothing is given up because of an answer that judges the endpoint and not the events.

use std::collections::BTreeSet;
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport, Seen};
use afterboot_beacon::wire::Counters;
use afterboot_beacon::{Beacon, BeaconBuilder, EndpointState, HeldReason};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::collector::mode::Fixed;
use crate::collector::{Mode, Server};
use crate::common::{LONG, Root, assert_clean, balance, balanced, event, ms, secs, until, until_arrived};

fn beacon(server: &ScriptedTransport) -> BeaconBuilder {
    Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio().seed(5)
}

fn nothing_lost(counters: &Counters) {
    assert_eq!((counters.dropped_in_all(), counters.dead, counters.rejected), (0, 0, 0), "{counters:?}");
}

/// B10, B21: the batch is not at fault, and the next process finds everything.
#[test]
fn an_endpoint_that_answers_wrongly_is_held_and_costs_nothing() {
    let page = Fixed::new(200).header("content-type", "application/json").body("{\"ok\":true}");
    let away = Fixed::new(302).header("location", "http://127.0.0.1:1/elsewhere");
    let modes = [
        Mode::Captive,
        Mode::Fixed(page),
        Mode::Fixed(Fixed::new(204)),
        Mode::Fixed(away),
        Mode::Fixed(Fixed::new(401)),
        Mode::Fixed(Fixed::new(403)),
        Mode::Fixed(Fixed::new(404)),
        Mode::Fixed(Fixed::new(407)),
    ];
    for mode in modes {
        let (server, root) = (Server::start(mode.clone()), Root::new());
        let beacon = root.beacon(&server).batch_events(5).build().expect("a beacon");
        let names: Vec<String> = (0..20).map(|number| format!("e{number}")).collect();
        for name in &names {
            beacon.post("click", &event(name, None));
        }
        beacon.post("durable", &event("durable", None)).durable().wait_blocking(LONG).expect("room");
        until("a held endpoint", || matches!(beacon.health().endpoint, EndpointState::Held { .. }));
        let EndpointState::Held { reason, .. } = beacon.health().endpoint else { panic!("it was held") };
        match &mode {
            Mode::Fixed(fixed) if fixed.status >= 300 => assert_eq!(reason, HeldReason::Status(fixed.status)),
            _ => assert!(matches!(reason, HeldReason::NoAck(_)), "{mode:?}: {reason:?}"),
        }
        // The network says nothing about that.
        beacon.notify_online();
        assert!(matches!(beacon.health().endpoint, EndpointState::Held { .. }));
        nothing_lost(&balanced(&beacon));
        let before = server.look(|ledger| ledger.requests.len());
        assert!(before <= 2, "{before} requests, of which only two could be under way together");
        let begun = Instant::now();
        let counters = balance(beacon.shutdown_blocking(secs(5)));
        assert!(begun.elapsed() < secs(3), "nothing is waited for: {:?}", begun.elapsed());
        nothing_lost(&counters);
        assert_eq!((counters.spooled, counters.posted), (21, 21), "{counters:?}");

        server.set_mode(Mode::Ok);
        let next = root.beacon(&server).build().expect("a beacon");
        until_arrived(&server, &names);
        nothing_lost(&balance(next.shutdown_blocking(secs(5))));
        assert_clean(&server);
    }
}

/// B10: held for half a minute and then longer, one probe each time, and nothing is lost.
#[tokio::test(start_paused = true)]
async fn a_held_endpoint_is_probed_by_one_batch_until_it_is_well() {
    for reply in [Reply::Status(404), Reply::Status(401), Reply::Status(302), Reply::Status(200)] {
        let wrong = reply.clone();
        let server = ScriptedTransport::new(move |_| wrong.clone());
        let beacon = beacon(&server).batch_events(10).build().unwrap();
        let begun = Instant::now();
        for number in 0..60 {
            beacon.post("click", &number);
        }
        sleep(secs(10)).await;
        // It is no matter of the network.
        beacon.notify_online();
        sleep(secs(90)).await;
        let counters = balanced(&beacon);
        nothing_lost(&counters);
        assert_eq!(counters.queued + counters.in_flight, 60, "{counters:?}");
        let at: Vec<Duration> = server.seen().iter().map(|seen| seen.at - begun).collect();
        // Two were under way when the first answer came; then one after 22 to 30 s, and one after 45 to 60 s more.
        assert_eq!(at.len(), 4, "{at:?}");
        assert!(at[2] >= ms(22_500) && at[2] <= ms(30_010), "{at:?}");
        assert!(at[3] - at[2] >= secs(45) && at[3] - at[2] <= ms(60_010), "{at:?}");
        server.set_script(|_| Reply::Accept);
        sleep(secs(125)).await;
        assert_eq!(balanced(&beacon).acked, 60);
        assert_eq!(beacon.health().endpoint, EndpointState::Healthy);
    }
}

/// B25: a batch that is too large is halved, not dropped.
#[test]
fn a_server_that_takes_only_small_bodies_gets_everything() {
    let (server, root) = (Server::start(Mode::Small(2000)), Root::new());
    let beacon = root.beacon(&server).build().expect("a beacon");
    let names: Vec<String> = (0..300).map(|number| format!("e{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let event = event(name, None);
        let post = beacon.post("click", &event);
        if number % 50 == 49 { drop(post.urgent().durable()) } else { drop(post) }
    }
    let flushed = beacon.flush_blocking(secs(20));
    assert!(flushed.complete, "{flushed:?}");
    let counters = balance(flushed.counters);
    nothing_lost(&counters);
    assert_eq!(counters.acked, 300, "{counters:?}");
    until_arrived(&server, &names);
    assert!(server.look(|ledger| ledger.requests.iter().any(|seen| seen.status == 413)));
    nothing_lost(&balance(beacon.shutdown_blocking(secs(5))));
    assert_clean(&server);
    assert_eq!(root.processes().len(), 0, "no row of a part is left");
}

/// B25: one event alone that no server takes is a dead letter, and is there to be looked at in the next process.
#[test]
fn an_event_that_is_too_large_alone_becomes_a_dead_letter_that_outlives_the_process() {
    let (server, root) = (Server::start(Mode::Fixed(Fixed::new(413))), Root::new());
    let beacon = root.beacon(&server).build().expect("a beacon");
    beacon.post("click", &event("large", None)).urgent();
    let counters = balance(beacon.shutdown_blocking(secs(10)));
    assert_eq!((counters.dead, counters.spooled), (1, 0), "{counters:?}");
    let next = root.beacon(&server).build().expect("a beacon");
    let letters = || {
        let listed = crate::common::block_on(next.dead_letters(None, 10));
        listed.expect("a spool").len()
    };
    until("the dead letter", || letters() == 1);
    balance(next.shutdown_blocking(secs(5)));
}

/// B11, B23: full batches wait like the rest, and one request at a time asks whether the server is back.
#[tokio::test(start_paused = true)]
async fn while_the_server_fails_one_probe_at_a_time_leaves_however_much_is_posted() {
    let server = ScriptedTransport::new(|_| Reply::After(ms(200), Box::new(Reply::Status(503))));
    let beacon = beacon(&server).batch_events(10).build().unwrap();
    let begun = Instant::now();
    for round in 0..600 {
        for number in 0..10 {
            beacon.post("click", &(round, number));
        }
        if round % 7 == 0 {
            beacon.post("crash", &round).urgent();
        }
        balanced(&beacon);
        sleep(ms(100)).await;
    }
    let at: Vec<Duration> = server.seen().iter().map(|seen| seen.at - begun).collect();
    // Until the first answer the endpoint is well, and two requests may be under way.
    let probes = &at[2..];
    assert!(at[1] <= ms(200), "{at:?}");
    assert!((4..=7).contains(&probes.len()), "{at:?}");
    let mut before = ms(200);
    for (step, probe) in probes.iter().enumerate() {
        let (wait, full) = (*probe - before, secs(1 << step.min(5)));
        assert!(wait >= full * 3 / 4 && wait <= full + ms(10), "probe {step} after {wait:?}: {at:?}");
        before = *probe + ms(200);
    }
    server.set_script(|_| Reply::Accept);
    beacon.notify_online();
    sleep(secs(40)).await;
    let counters = balanced(&beacon);
    nothing_lost(&counters);
    assert_eq!(counters.acked, counters.posted, "{counters:?}");
    let seen = server.seen();
    let keys: BTreeSet<u64> =
        seen.iter().flat_map(|seen| seen.batch.events.iter().map(|event| event.seq)).collect();
    assert_eq!(keys.len() as u64, counters.posted);
}

/// B19: what says when it left is renewed; what says when it happened is not.
#[tokio::test(start_paused = true)]
async fn each_try_says_when_it_left_and_the_events_keep_when_they_happened() {
    let mut tries = 0;
    let server = ScriptedTransport::new(move |_| {
        tries += 1;
        if tries < 5 { Reply::Status(503) } else { Reply::Accept }
    });
    let beacon = beacon(&server).build().unwrap();
    beacon.post("click", &1);
    sleep(secs(60)).await;
    let seen = server.seen();
    assert_eq!(seen.len(), 5);
    let attempts: Vec<u32> = seen.iter().map(|seen| seen.headers.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
    let first = &seen[0];
    for later in &seen[1..] {
        let passed = (later.at - first.at).as_millis() as u64;
        for (name, there, here) in [
            ("sent_at", first.headers.sent_at, later.headers.sent_at),
            ("mono", first.headers.mono, later.headers.mono),
        ] {
            let said = here - there;
            assert!(said.abs_diff(passed) <= 1, "{name} went on by {said} ms in {passed} ms");
        }
        let stamps = |seen: &Seen| {
            let event = &seen.batch.events[0];
            (event.seq, event.id, event.at, event.mono)
        };
        assert_eq!(stamps(later), stamps(first));
        assert_eq!(later.batch.head, first.batch.head);
        assert!(later.headers.counters.balances());
    }
    assert_eq!(balanced(&beacon).acked, 1);
}

/// B25: what a batch declares may be what makes it too large; its event is not at fault.
#[tokio::test(start_paused = true)]
async fn an_event_does_not_die_of_the_gaps_that_its_batch_declares() {
    let too_large = |seen: &Seen| seen.inflated_len > 2000;
    let server =
        ScriptedTransport::new(move |seen| if too_large(seen) { Reply::Status(413) } else { Reply::Accept });
    let beacon = beacon(&server).batch_events(1).build().unwrap();
    let large = "x".repeat(3000);
    for number in 0..40 {
        beacon.post("large", &large);
        beacon.post("click", &number);
    }
    sleep(secs(10)).await;
    for number in 40..60 {
        beacon.post("click", &number);
        sleep(secs(6)).await;
    }
    let counters = balance(beacon.shutdown(secs(10)).await);
    assert_eq!((counters.acked, counters.dead, counters.dropped_in_all()), (60, 40, 0), "{counters:?}");
    let seen = server.seen();
    let taken = seen.iter().filter(|seen| !too_large(seen));
    let declared: BTreeSet<u64> =
        taken.flat_map(|seen| seen.batch.head.gaps.iter().flat_map(|gap| gap.first..=gap.last)).collect();
    assert_eq!(declared, (0..80).step_by(2).collect::<BTreeSet<u64>>());
}
