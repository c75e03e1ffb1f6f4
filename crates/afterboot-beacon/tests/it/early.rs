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
    EARLY.post("crash", &1).urgent();
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

static WOKEN: Early = Early::new();

struct PostsEarly;

impl std::task::Wake for PostsEarly {
    fn wake(self: std::sync::Arc<Self>) {
        WOKEN.post("woken", &1);
        assert!(WOKEN.len() <= 1001);
    }
}

/// Whoever waits for a receipt may do anything when it comes: nothing is locked then.
#[test]
fn a_waker_of_an_early_receipt_may_post_early() {
    use std::task::{Context, Waker};

    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let waker = Waker::from(std::sync::Arc::new(PostsEarly));
        let mut context = Context::from_waker(&waker);
        let mut receipts = Vec::new();
        // The last ones do not fit any more.
        for n in 0..1003 {
            let mut receipt = Box::pin(WOKEN.post("early", &n).durable().into_future());
            let _ = receipt.as_mut().poll(&mut context);
            receipts.push(receipt);
        }
        let server = ScriptedTransport::accepting();
        let builder = afterboot_beacon::Beacon::builder("shop").transport(server.clone()).early(&WOKEN);
        let beacon = builder.allow("early", ["n"]).durability(afterboot_beacon::Durability::Buffered).build();
        let beacon = beacon.unwrap();
        for receipt in &mut receipts[..1000] {
            assert!(receipt.as_mut().poll(&mut context).is_ready(), "it was told at the start");
        }
        let counters = beacon.shutdown_blocking(std::time::Duration::from_secs(5));
        assert_eq!((counters.posted, counters.acked), (2003, 2000), "{counters:?}");
        assert_eq!(&routes(&server)[..1000], vec!["early"; 1000]);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
}

/// The receipt says the same as that of a beacon.
#[tokio::test(start_paused = true)]
async fn an_early_post_that_cannot_be_encoded_is_refused_as_that() {
    static EARLY: Early = Early::new();
    let receipt = EARLY.post("fails", &Fails).durable();
    let refused = afterboot_beacon::NotDurable::Dropped(afterboot_beacon::DropReason::Unencodable);
    assert_eq!(receipt.await, Err(refused));
}
