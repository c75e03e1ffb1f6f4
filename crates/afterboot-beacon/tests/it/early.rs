//! Posts from before there is a beacon.

use afterboot_beacon::Early;
use afterboot_beacon::testing::ScriptedTransport;
use serde_json::{Value, json};

use crate::posting::{Fails, beacon, data, routes, settled};

#[tokio::test(start_paused = true)]
async fn what_was_posted_before_there_was_a_beacon_comes_first_and_in_order() {
    static EARLY: Early = Early::new();
    for n in 0..3 {
        EARLY.post("early", &json!({"n": n, "secret": 1}));
    }
    EARLY.post("state", &1).merge_by("k");
    EARLY.post("state", &2).merge_by("k");
    EARLY.post("fails", &Fails);
    EARLY.post("crash", &1).signal();
    assert_eq!(EARLY.len(), 6);
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).allow("early", ["n"]).early(&EARLY).build().unwrap();
    beacon.post("late", &1);
    EARLY.post("by the old name", &2);
    assert!(EARLY.is_empty());
    settled(&beacon).await;
    let basic: Vec<Value> = data(&server).split_off(1);
    assert_eq!(routes(&server), ["crash", "early", "early", "early", "state", "late", "by the old name"]);
    assert_eq!(basic, [json!({"n": 0}), json!({"n": 1}), json!({"n": 2}), json!(2), json!(1), json!(2)]);
    let counters = beacon.counters();
    assert_eq!((counters.posted, counters.merged, counters.dropped["unencodable"]), (9, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_early_queue_is_bounded_and_what_did_not_fit_is_counted() {
    static EARLY: Early = Early::new();
    for n in 0..1003 {
        EARLY.post("early", &n);
    }
    let server = ScriptedTransport::accepting();
    let beacon = beacon(&server).early(&EARLY).build().unwrap();
    settled(&beacon).await;
    let counters = beacon.counters();
    assert_eq!((counters.posted, counters.acked, counters.dropped["early_full"]), (1003, 1000, 3));
}
