//! Batches written by hand, for tests that have no client.

use afterboot_beacon::wire::{
    BatchWriter, Counters, Head, Headers, Priority, StreamId, Verdict, encode_event, gzip,
};
use afterboot_beacon::{HttpTransport, Request, Response, Token, Transport, TransportError, wire};
use serde_json::json;
use uuid::Uuid;

pub(crate) const STREAM: StreamId = StreamId::from_bytes([7; 16]);

pub(crate) fn head() -> Head {
    Head {
        app: "shop".to_owned(),
        stream: STREAM,
        user: Some("u1".to_owned()),
        session: Some("s1".to_owned()),
        priority: Priority::Basic,
        gaps: Vec::new(),
        end: None,
    }
}

pub(crate) fn headers(attempt: u32) -> Headers {
    Headers {
        sent_at: 1_790_000_001_000,
        mono: 5_000,
        boot: "boot-1".to_owned(),
        events_boot: "boot-1".to_owned(),
        attempt,
        batch: Some(format!("try-{attempt}")),
        sender: STREAM,
        counters: Counters::default(),
    }
}

/// The id that event `seq` has in every batch.
pub(crate) fn id(seq: u64) -> Uuid {
    let version_7 = 0x0190_0000_0000_7000_8000_0000_0000_0000;
    Uuid::from_u128(version_7 | u128::from(seq))
}

pub(crate) fn body(head: &Head, seqs: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut writer = BatchWriter::new(head);
    for seq in seqs {
        let mut encoded = Vec::new();
        let data = json!({ "n": seq, "path": "/checkout" });
        encode_event(&mut encoded, id(seq), "order", 1_790_000_000_000 + seq, 4_000 + seq, &data)
            .expect("JSON");
        writer.event(seq, &encoded);
    }
    writer.finish()
}

pub(crate) fn request(body: &[u8]) -> Request {
    Request::new(gzip(body).into(), headers(1), Some(Token::new("secret-1")))
}

/// Sends these numbers of [`STREAM`].
pub(crate) async fn post(
    transport: &HttpTransport,
    seqs: impl IntoIterator<Item = u64>,
) -> Result<Response, TransportError> {
    transport.send(request(&body(&head(), seqs))).await
}

/// Sends these numbers, and reads the ack.
pub(crate) async fn settle(transport: &HttpTransport, seqs: &[u64]) -> Vec<Verdict> {
    let response = post(transport, seqs.iter().copied()).await.expect("an answer");
    assert_eq!(response.status, 202);
    wire::Ack::parse(&response.body, seqs.len()).expect("an ack").1
}
