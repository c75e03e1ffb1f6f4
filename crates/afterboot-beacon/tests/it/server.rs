//! The test server does what its modes say and counts right: other tests lean on it.

use std::time::Duration;

use afterboot_beacon::wire::{Gap, Priority, Verdict};
use afterboot_beacon::{HttpTransport, Transport};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::collector::ledger::Key;
use crate::collector::{Mode, Server};
use crate::requests::{STREAM, body, head, headers, id, post, request, settle};

fn transport(server: &Server) -> HttpTransport {
    HttpTransport::new(&server.url()).expect("an endpoint")
}

fn key(seq: u64) -> Key {
    Key { app: "shop".to_owned(), stream: STREAM, seq }
}

#[tokio::test]
async fn what_was_sent_is_in_the_ledger_word_for_word() {
    let server = Server::start(Mode::Ok);
    assert_eq!(settle(&transport(&server), &[0, 1]).await, [Verdict::Accepted, Verdict::Accepted]);
    let ledger = server.ledger();
    let stored = &ledger.accepted[&key(1)];
    assert_eq!(stored.id, id(1).to_string());
    assert_eq!((stored.user.as_deref(), stored.session.as_deref()), (Some("u1"), Some("s1")));
    assert_eq!((stored.priority, stored.route.as_str()), (Priority::Basic, "order"));
    assert_eq!((stored.at, stored.mono), (1_790_000_000_001, 4_001));
    assert_eq!(stored.data, json!({ "n": 1, "path": "/checkout" }));
    let order: Vec<u64> = ledger.in_order().iter().map(|(key, _)| key.seq).collect();
    assert_eq!(order, [0, 1]);
    let seen = &ledger.requests[0];
    assert_eq!((seen.connection, seen.status, seen.target.as_str()), (1, 202, "/v1/events"));
    assert_eq!(seen.parsed, Some(headers(1)));
    assert_eq!(seen.head, Some(head()));
    assert_eq!(seen.seqs, [0, 1]);
    assert!(seen.bytes > 0 && seen.bytes < seen.inflated);
    assert!(seen.at <= Instant::now());
    assert_eq!(ledger.wrong, [""; 0]);
}

#[tokio::test]
async fn a_key_counts_once_and_another_id_for_it_is_a_conflict() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    settle(&transport, &[0, 1]).await;
    assert_eq!(settle(&transport, &[1, 2]).await, [Verdict::Accepted, Verdict::Accepted]);
    let other = String::from_utf8(body(&head(), [2])).expect("text");
    let other = other.replace(&id(2).to_string(), &id(99).to_string());
    transport.send(request(other.as_bytes())).await.expect("an answer");
    let ledger = server.ledger();
    assert_eq!((ledger.accepted.len(), ledger.duplicates), (3, 1));
    assert_eq!(ledger.conflicts, [key(2)]);
}

#[tokio::test]
async fn partial_asks_once_again_and_rejects_for_good() {
    let server = Server::start(Mode::Partial);
    let transport = transport(&server);
    let rejected = Verdict::Rejected("too_old".to_owned());
    let first = settle(&transport, &[2, 3, 4]).await;
    assert_eq!(first, [Verdict::Accepted, Verdict::Retry, rejected.clone()]);
    assert_eq!(settle(&transport, &[3, 4]).await, [Verdict::Accepted, rejected]);
    let ledger = server.ledger();
    assert_eq!((ledger.accepted.len(), ledger.rejected.len(), ledger.duplicates), (2, 1, 0));
    assert_eq!(ledger.rejected[&key(4)], "too_old");
}

#[tokio::test]
async fn small_refuses_by_the_inflated_size_and_takes_what_fits() {
    let server = Server::start(Mode::Small(Mode::SMALL));
    let transport = transport(&server);
    assert_eq!(post(&transport, 0..100).await.expect("an answer").status, 413);
    assert_eq!(post(&transport, 0..10).await.expect("an answer").status, 202);
    assert_eq!(server.look(|ledger| ledger.accepted.len()), 10);
}

#[tokio::test]
async fn flap_takes_turns_and_a_lost_ack_has_been_taken() {
    let server = Server::start(Mode::Flap(3));
    let transport = transport(&server);
    let mut statuses = Vec::new();
    for seq in 0..9 {
        statuses.push(post(&transport, [seq]).await.map_or(0, |answer| answer.status));
    }
    assert_eq!(statuses, [202, 202, 202, 503, 0, 0, 202, 202, 202]);
    let ledger = server.ledger();
    // The 503 and the reset took nothing; the ack that broke off did.
    assert_eq!(ledger.missing("shop", STREAM), [3, 4]);
    assert_eq!(ledger.wrong, [""; 0]);
}

#[tokio::test]
async fn refuse_closes_the_port_and_any_other_mode_opens_it_again() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    settle(&transport, &[0]).await;
    server.set_mode(Mode::Refuse);
    assert!(post(&transport, [1]).await.is_err(), "its connection is closed");
    let refused = post(&transport, [1]).await.expect_err("nobody listens");
    assert!(refused.to_string().contains("refused"), "{refused}");
    server.set_mode(Mode::Ok);
    settle(&transport, &[1]).await;
    assert_eq!(server.look(|ledger| (ledger.accepted.len(), ledger.connections)), (2, 2));
}

#[tokio::test]
async fn a_restart_keeps_the_port_and_the_ledger() {
    let mut server = Server::start(Mode::Ok);
    let transport = transport(&server);
    settle(&transport, &[0]).await;
    let url = server.url();
    server.stop();
    assert!(post(&transport, [1]).await.is_err());
    server.restart();
    assert_eq!(server.url(), url);
    settle(&transport, &[1]).await;
    assert_eq!(server.ledger().accepted.len(), 2);
}

#[tokio::test]
async fn hung_reads_and_never_answers() {
    let server = Server::start(Mode::Hung);
    let transport = transport(&server);
    let waiting = tokio::spawn(async move { post(&transport, [0]).await });
    server.wait_until("request", |ledger| ledger.requests.len() == 1).await;
    assert!(timeout(Duration::from_millis(200), waiting).await.is_err());
    assert_eq!(server.ledger().accepted.len(), 0);
}

#[tokio::test]
async fn the_other_modes_answer_as_they_are_named() {
    let server = Server::start(Mode::Unavailable);
    let transport = transport(&server);
    let answer = post(&transport, [0]).await.expect("an answer");
    assert_eq!((answer.status, answer.retry_after), (503, None));
    server.set_mode(Mode::Busy);
    let answer = post(&transport, [0]).await.expect("an answer");
    assert_eq!((answer.status, answer.retry_after.as_deref()), (429, Some("1")));
    server.set_mode(Mode::Captive);
    let answer = post(&transport, [0]).await.expect("an answer");
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(b"<!doctype html>"));
    server.set_mode(Mode::Slow(Mode::SLOW));
    let began = Instant::now();
    settle(&transport, &[0]).await;
    assert!(began.elapsed() >= Mode::SLOW);
    server.set_mode(Mode::LostAck);
    assert!(post(&transport, [1]).await.is_err());
    assert_eq!(server.ledger().accepted.len(), 2);
}

#[tokio::test]
async fn a_request_without_the_token_is_not_taken() {
    let server = Server::start(Mode::Ok);
    server.require_token(Some("secret-2"));
    let transport = transport(&server);
    assert_eq!(post(&transport, [0]).await.expect("an answer").status, 401);
    server.require_token(Some("secret-1"));
    settle(&transport, &[0]).await;
}

#[tokio::test]
async fn gaps_and_ends_are_declared_and_what_is_missing_beside_them_is_known() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    let mut head = head();
    head.gaps = vec![Gap { stream: STREAM, first: 1, last: 2, why: "evicted".to_owned() }];
    head.end = Some(6);
    for _ in 0..2 {
        transport.send(request(&body(&head, [0, 4]))).await.expect("an answer");
    }
    let ledger = server.ledger();
    assert_eq!(ledger.missing("shop", STREAM), [3, 5]);
    assert_eq!(ledger.gaps, [("shop".to_owned(), head.gaps[0].clone())]);
    assert_eq!(ledger.ends[&("shop".to_owned(), STREAM)], 6);
    head.end = Some(7);
    transport.send(request(&body(&head, [0, 4]))).await.expect("an answer");
    assert_eq!(server.ledger().wrong.len(), 1);
}

#[tokio::test]
async fn what_breaks_the_contract_is_written_down() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    let mut unbalanced = request(&body(&head(), [0]));
    unbalanced.headers.counters.posted = 3;
    let mut not_gzip = request(&[]);
    not_gzip.body = b"{}".as_slice().into();
    let large = body(&head(), 0..100).repeat(10);
    let backwards = body(&head(), [1, 0]);
    let nothing = body(&head(), []);
    let cases = [unbalanced, not_gzip, request(&large), request(&backwards), request(&nothing)];
    let count = cases.len();
    for case in cases {
        assert_eq!(transport.send(case).await.expect("an answer").status, 400);
    }
    let wrong = server.ledger().wrong;
    assert_eq!(wrong.len(), count, "{wrong:?}");
    for (said, expected) in wrong.iter().zip(["balance", "gzip", "65536", "comes after", "nothing"]) {
        assert!(said.contains(expected), "{said}");
    }
}
