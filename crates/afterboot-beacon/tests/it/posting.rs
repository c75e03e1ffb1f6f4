//! What a post is, and what it is not: under a paused clock, with a server that takes everything.

use std::sync::Mutex;
use std::time::Duration;

use afterboot_beacon::testing::{Reply, ScriptedTransport};
use afterboot_beacon::wire::{Ack, Priority};
use afterboot_beacon::{
    Beacon, BeaconBuilder, BeaconEvent, DropReason, EndpointState, HeldReason, Next, NotDurable, Response,
    SpoolState, Token,
};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn beacon(server: &ScriptedTransport) -> BeaconBuilder {
    Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio().seed(1)
}

pub(crate) fn data(server: &ScriptedTransport) -> Vec<Value> {
    let events = server.seen().into_iter().flat_map(|seen| seen.batch.events);
    events.map(|event| serde_json::from_str(event.data.get()).unwrap()).collect()
}

pub(crate) fn routes(server: &ScriptedTransport) -> Vec<String> {
    server.seen().into_iter().flat_map(|seen| seen.batch.events).map(|event| event.route).collect()
}

pub(crate) async fn settled(beacon: &Beacon) {
    let flushed = beacon.flush(secs(60)).await;
    assert!(flushed.complete && flushed.counters.balances(), "{flushed:?}");
}

#[tokio::test(start_paused = true)]
async fn only_allowed_keys_leave() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).allow("login", ["method"]).allow("login", ["ok"]).build().unwrap();
    beacon.post("login", &json!({"method": "totp", "password": "hunter2", "ok": true}));
    beacon.post("login", "anna@example.org");
    beacon.post("page", &json!({"path": "/"}));
    settled(&beacon).await;
    assert_eq!(data(&server), [json!({"method": "totp", "ok": true}), json!({}), json!({"path": "/"})]);
    assert_eq!(beacon.health().keys_removed, 2);
}

pub(crate) struct Fails;
impl Serialize for Fails {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("no"))
    }
}

struct Panics;
impl Serialize for Panics {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("on purpose");
    }
}

struct Posts<'a>(&'a Beacon);
impl Serialize for Posts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.post("inner", &1);
        serializer.serialize_str("outer")
    }
}

/// B6: what cannot be encoded is counted, and the host goes on.
#[tokio::test(start_paused = true)]
async fn data_that_fails_panics_or_posts_itself_harms_nobody() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    beacon.post("fails", &Fails);
    beacon.post("panics", &Panics);
    let receipt = beacon.post("panics", &Panics).durable();
    beacon.post("outer", &Posts(&beacon));
    assert_eq!(receipt.await, Err(NotDurable::Dropped(DropReason::Unencodable)));
    settled(&beacon).await;
    assert_eq!(routes(&server), ["inner", "outer"]);
    let counters = beacon.counters();
    assert_eq!((counters.posted, counters.acked, counters.dropped["unencodable"]), (5, 2, 3));
}

/// B9: an event that fits no batch is a dead letter from the start, and the rest goes on.
#[cfg(feature = "spool")]
#[tokio::test(start_paused = true)]
async fn an_event_that_fits_no_batch_is_set_aside_and_its_number_is_declared() {
    let server = ScriptedTransport::accepting();
    let folder = tempfile::tempdir().unwrap();
    let spool = afterboot_beacon::SpoolOptions::new(folder.path().join("spool"));
    let beacon = beacon(&server).spool(spool).build().unwrap();
    let receipt = beacon.post("huge", &"x".repeat(70_000)).durable();
    beacon.post("small", &1);
    assert_eq!(receipt.await, Err(NotDurable::Oversize));
    settled(&beacon).await;
    let counters = beacon.counters();
    assert_eq!((counters.dead, counters.acked), (1, 1));
    let seen = server.seen();
    assert_eq!(seen[0].batch.head.gaps.len(), 1);
    assert_eq!(seen[0].batch.head.gaps[0].why, "dead");
}

#[tokio::test(start_paused = true)]
async fn without_a_spool_a_durable_post_says_so_and_is_sent_all_the_same() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    assert_eq!(beacon.post("order", &1).durable().await, Err(NotDurable::NoSpool));
    settled(&beacon).await;
    assert_eq!(beacon.counters().acked, 1);
    assert_eq!(beacon.health().spool, SpoolState::Off);
}

#[tokio::test(start_paused = true)]
async fn priority_follows_the_delay() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    beacon.post("a", &1).delay(secs(1));
    beacon.post("b", &1).delay(Duration::from_millis(1001));
    beacon.post("c", &1).vital().delay(secs(60));
    beacon.post("d", &1).urgent();
    sleep(secs(2)).await;
    let by_priority = |wanted| {
        let seen = server.seen().into_iter().filter(move |seen| seen.batch.head.priority == wanted);
        seen.flat_map(|seen| seen.batch.events).map(|event| event.route).collect::<Vec<_>>()
    };
    assert_eq!(by_priority(Priority::Vital), ["a", "c", "d"]);
    assert_eq!(by_priority(Priority::Basic), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_nobody_could_send_expires_in_memory_and_is_declared() {
    let server = ScriptedTransport::new(|_| Reply::Broken);
    let beacon = beacon(&server).build().unwrap();
    beacon.post("short", &1).expiry(secs(120));
    sleep(secs(7)).await;
    beacon.post("long", &2).expiry(secs(4 * 24 * 3600));
    sleep(secs(2 * 24 * 3600)).await;
    let counters = beacon.counters();
    assert_eq!((counters.dropped["expired"], counters.queued), (1, 1), "{counters:?}");
    server.set_script(|_| Reply::Accept);
    sleep(secs(60)).await;
    let last = server.seen().pop().unwrap();
    assert_eq!(last.batch.events[0].route, "long");
    // The batch was sealed before the other one expired; the next one declares it.
    beacon.post("next", &3).urgent();
    sleep(secs(1)).await;
    let gaps = server.seen().pop().unwrap().batch.head.gaps;
    assert_eq!((gaps.len(), gaps[0].why.as_str()), (1, "expired"));
}

#[tokio::test(start_paused = true)]
async fn another_session_seals_the_batch() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).session("one").build().unwrap();
    beacon.post("a", &1);
    beacon.set_session(Some("two"));
    beacon.post("b", &1);
    beacon.set_session(None);
    beacon.post("c", &1);
    settled(&beacon).await;
    let sessions: Vec<_> = server.seen().into_iter().map(|seen| seen.batch.head.session).collect();
    assert_eq!(sessions, [Some("one".to_owned()), Some("two".to_owned()), None]);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_again_when_the_endpoint_refuses_it() {
    let server = ScriptedTransport::new(|seen| match seen.token.as_deref() {
        Some("token 2") => Reply::Accept,
        _ => Reply::Status(401),
    });
    let asked = Mutex::new(0);
    let ask = move || {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        let token = Token::new(format!("token {asked}"));
        async move { Some(token) }
    };
    let beacon = beacon(&server).token_from(ask).build().unwrap();
    beacon.post("a", &1).urgent();
    sleep(secs(1)).await;
    assert!(matches!(beacon.health().endpoint, EndpointState::Held { .. }));
    assert_eq!(beacon.counters().queued, 1);
    sleep(secs(31)).await;
    assert_eq!(beacon.counters().acked, 1);
    assert_eq!(beacon.health().endpoint, EndpointState::Healthy);
    beacon.set_user(Some("anna"));
    beacon.post("order", &"red shoes");
    let shown = format!("{beacon:?}");
    for private in ["token 2", "anna", "shoes"] {
        assert!(!shown.contains(private), "{private:?} is in {shown}");
    }
}

/// A line break at the end of a file with a token, say.
#[tokio::test(start_paused = true)]
async fn a_token_that_no_header_may_hold_holds_the_endpoint_until_there_is_another() {
    let asked = Mutex::new(0);
    let ask = move || {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        let token = Token::new(if *asked == 1 { "secret\n" } else { "secret" });
        async move { Some(token) }
    };
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).token_from(ask).build().unwrap();
    beacon.post("a", &1).urgent();
    sleep(secs(1)).await;
    let health = beacon.health();
    assert!(matches!(health.endpoint, EndpointState::Held { reason: HeldReason::Token, .. }), "{health:?}");
    assert!(!format!("{health:?}").contains("secret"));
    sleep(secs(31)).await;
    assert_eq!(beacon.counters().acked, 1);
    assert_eq!(beacon.health().last_error, None);
    assert!(beacon.counters().dropped.is_empty());
}

#[tokio::test(start_paused = true)]
async fn offline_holds_everything_and_online_ends_a_backoff_but_no_hold() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    beacon.notify_offline();
    beacon.post("a", &1).urgent();
    sleep(secs(600)).await;
    assert_eq!(server.requests(), 0);
    assert_eq!(beacon.health().endpoint, EndpointState::Offline);
    server.set_script(|_| Reply::Status(503));
    beacon.notify_online();
    sleep(secs(20)).await;
    let before = server.requests();
    server.set_script(|_| Reply::Status(404));
    beacon.notify_online();
    sleep(secs(1)).await;
    assert_eq!(server.requests(), before + 1, "the backoff is over");
    beacon.notify_online();
    sleep(secs(1)).await;
    assert_eq!(server.requests(), before + 1, "a hold is no matter of the network");
    assert_eq!(beacon.counters().queued, 1);
}

/// B13: an hour is the longest that a server may ask for, and clients that are told the same are spread.
#[tokio::test(start_paused = true)]
async fn a_retry_after_is_obeyed_up_to_an_hour_and_spread() {
    for (asked, at_least) in [("120", 120), ("99999999999", 3600)] {
        let server = ScriptedTransport::new(move |_| Reply::RetryAfter(429, asked.to_owned()));
        let beacon = beacon(&server).build().unwrap();
        beacon.post("a", &1).urgent();
        sleep(secs(at_least - 1)).await;
        assert_eq!(server.requests(), 1, "{asked}");
        sleep(secs(5)).await;
        assert_eq!(server.requests(), 2, "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_may_stop_an_experiment_and_events_tell() {
    let server = ScriptedTransport::new(|seen| {
        let ack = Ack { kill: Some("spring".to_owned()), ..Ack::all_accepted(seen.batch.events.len()) };
        Reply::Response(Response::new(202).with_body(serde_json::to_vec(&ack).unwrap()))
    });
    let beacon = beacon(&server).build().unwrap();
    let mut events = beacon.events();
    beacon.post("a", &1);
    settled(&beacon).await;
    let mut told = Vec::new();
    while let Some(Next::Event(event)) = events.try_next() {
        told.push(event);
    }
    assert!(matches!(told[0], BeaconEvent::Sent { events: 1, attempt: 1, .. }), "{told:?}");
    let acked = |event: &BeaconEvent| {
        matches!(event, BeaconEvent::Acked { accepted: 1, rejected: 0, retried: 0, .. })
    };
    assert!(told.iter().any(acked), "{told:?}");
    let killed = |event: &BeaconEvent| matches!(event, BeaconEvent::Kill { epoch, .. } if epoch == "spring");
    assert!(told.iter().any(killed), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_does_not_keep_up_is_told_how_much_it_missed() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    let mut events = beacon.events();
    for n in 0..200 {
        beacon.post("a", &n).urgent();
        settled(&beacon).await;
    }
    let Some(Next::Lagged(missed)) = events.try_next() else { panic!("it did not lag") };
    let mut kept = 0;
    while let Some(Next::Event(_)) = events.try_next() {
        kept += 1;
    }
    assert_eq!((missed, kept), (400 - 256, 256));
}

#[tokio::test(start_paused = true)]
async fn a_large_event_is_warned_about_once_a_route() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    let mut events = beacon.events();
    let large = "x".repeat(9000);
    for _ in 0..3 {
        beacon.post("large", &large);
        beacon.post(&"r".repeat(200), &1);
    }
    let mut warned = Vec::new();
    while let Some(Next::Event(event)) = events.try_next() {
        if let BeaconEvent::Oversized { route, .. } = event {
            warned.push(route);
        }
    }
    assert_eq!(warned, ["large".to_owned(), "r".repeat(128)]);
}

#[tokio::test(start_paused = true)]
async fn after_the_shutdown_posts_are_counted_and_nothing_else() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    beacon.post("a", &1);
    let counters = beacon.shutdown(secs(5)).await;
    assert_eq!(counters.acked, 1);
    beacon.post("b", &1);
    assert_eq!(beacon.post("c", &1).durable().await, Err(NotDurable::Dropped(DropReason::Closed)));
    assert_eq!(beacon.counters().dropped["closed"], 2);
    assert!(beacon.counters().balances());
    let again = beacon.shutdown(secs(5)).await;
    assert_eq!(again.dropped["closed"], 2);
    // The stream says that it is over, and how long it was.
    assert_eq!(server.seen().last().unwrap().batch.head.end, Some(1));
}

/// B22: with nothing left to send, a server that does not answer costs no more than the mark is worth.
#[tokio::test(start_paused = true)]
async fn a_shutdown_with_nothing_left_does_not_wait_for_a_server_that_is_gone() {
    for broken in [Reply::Hang, Reply::Broken, Reply::Status(503)] {
        let server = ScriptedTransport::accepting();
        let beacon = beacon(&server).build().unwrap();
        beacon.post("a", &1);
        settled(&beacon).await;
        let reply = broken.clone();
        server.set_script(move |_| reply.clone());
        let begun = Instant::now();
        let counters = beacon.shutdown(secs(60)).await;
        assert_eq!(counters.acked, 1);
        assert!(begun.elapsed() < secs(1), "{broken:?}: {:?}", begun.elapsed());
    }
}

#[test]
fn what_is_wrong_is_named_with_its_value_and_what_is_allowed() {
    let wrong = Beacon::builder("")
        .max_events(0)
        .batch_events(101)
        .batch_bytes(10)
        .vital_delay(secs(2))
        .basic_delay(secs(1))
        .request_time_limit(Duration::ZERO)
        .max_bytes(3)
        .token(Token::new("secret\n"))
        .build()
        .unwrap_err();
    assert!(wrong.is_config());
    let said = wrong.to_string();
    for part in [
        "app is \"\": 1 to 128 bytes",
        "max_events is 0: 1 or more",
        "batch_events is 101: 1 to 100",
        "batch_bytes is 10: 1024 to 65536",
        "vital_delay is 2s: at most 1 s",
        "basic_delay is 1s: more than 1 s",
        "request_time_limit is 0: more than 0",
        "endpoint is missing",
        "max_bytes is 3: at least the bytes of a batch, 1024",
        "token holds a line break",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

/// B9: without a spool nothing is kept of an event that fits no batch, so nobody is told that it was set aside.
#[tokio::test(start_paused = true)]
async fn without_a_spool_an_event_that_fits_no_batch_is_dropped_and_said_to_be() {
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).build().unwrap();
    let receipt = beacon.post("huge", &"x".repeat(70_000)).durable();
    assert_eq!(receipt.await, Err(NotDurable::Dropped(DropReason::TooLarge)));
    let counters = beacon.counters();
    assert_eq!((counters.dead, counters.dropped["too_large"]), (0, 1), "{counters:?}");
}
