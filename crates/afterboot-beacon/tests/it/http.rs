//! The HTTP transport against a real server.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use afterboot_beacon::{HttpTransport, MAX_RESPONSE, Token, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::collector::mode::Fixed;
use crate::collector::{Mode, Server};
use crate::requests::{body, head, post, request, settle};

fn transport(server: &Server) -> HttpTransport {
    HttpTransport::new(&server.url()).expect("an endpoint")
}

fn small_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A server that reads something, says this, and closes.
async fn says(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let _ = stream.read(&mut [0; 16 * 1024]).await;
        let _ = stream.write_all(&answer).await;
    });
    url
}

/// B21: the status decides, so each of them comes through as it is.
#[tokio::test]
async fn every_status_comes_through_with_its_body_and_retry_after() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    for status in [200, 202, 301, 302, 307, 400, 401, 403, 404, 407, 408, 413, 415, 422, 429, 500, 503, 599] {
        let fixed = Fixed::new(status).header("retry-after", "120").body("said");
        server.set_mode(Mode::Fixed(fixed));
        let answer = post(&transport, [0]).await.expect("an answer");
        assert_eq!((answer.status, answer.body.as_slice()), (status, &b"said"[..]));
        assert_eq!(answer.retry_after.as_deref(), Some("120"));
    }
}

/// B13: a date is handed on as it came too; what it means is for the client, which clamps it.
#[tokio::test]
async fn a_retry_after_is_handed_on_uninterpreted() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    for value in ["Fri, 31 Dec 9999 23:59:59 GMT", "99999999999999999999", "soon", ""] {
        server.set_mode(Mode::Fixed(Fixed::new(503).header("retry-after", value).header("date", "noon")));
        let answer = post(&transport, [0]).await.expect("an answer");
        assert_eq!((answer.retry_after.as_deref(), answer.date.as_deref()), (Some(value), Some("noon")));
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_nothing_goes_where_it_points() {
    let elsewhere = Server::start(Mode::Ok);
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    for status in [301, 302, 303, 307, 308] {
        server.set_mode(Mode::Fixed(Fixed::new(status).header("location", &elsewhere.url())));
        assert_eq!(post(&transport, [0]).await.expect("an answer").status, status);
    }
    assert_eq!(elsewhere.ledger().connections, 0);
}

#[tokio::test]
async fn the_token_is_in_its_header_and_nowhere_else() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    let request = request(&body(&head(), [0]));
    assert!(!format!("{transport:?} {request:?}").contains("secret-1"));
    transport.send(request).await.expect("an answer");
    let ledger = server.ledger();
    let seen = &ledger.requests[0];
    assert_eq!(seen.header("authorization"), Some("Bearer secret-1"));
    let holding: Vec<_> = seen.headers.iter().filter(|(_, value)| value.contains("secret-1")).collect();
    assert_eq!(holding.len(), 1);
    assert!(!seen.target.contains("secret-1"));
    assert_eq!(ledger.wrong, [""; 0]);
}

#[tokio::test]
async fn without_a_token_there_is_no_authorization() {
    let server = Server::start(Mode::Ok);
    let mut request = request(&body(&head(), [0]));
    request.token = None;
    transport(&server).send(request).await.expect("an answer");
    assert_eq!(server.ledger().requests[0].header("authorization"), None);
}

#[tokio::test]
async fn a_token_that_no_header_may_hold_is_an_error_that_does_not_repeat_it() {
    let server = Server::start(Mode::Ok);
    let mut request = request(&body(&head(), [0]));
    request.token = Some(Token::new("two\nlines"));
    let error = transport(&server).send(request).await.expect_err("no header");
    assert_eq!(error.to_string(), "authorization holds a character that is not allowed in a header");
    assert_eq!(server.ledger().connections, 0);
}

#[tokio::test]
async fn a_refused_connection_is_an_error_that_says_so() {
    let server = Server::start(Mode::Refuse);
    let error = post(&transport(&server), [0]).await.expect_err("nobody listens").to_string();
    assert!(error.starts_with("no answer: ") && error.contains("refused"), "{error}");
}

/// B5: a server that never answers holds nothing once the caller's limit drops the request.
#[tokio::test]
async fn a_dropped_request_closes_its_connection_and_the_next_one_works() {
    let server = Server::start(Mode::Hung);
    let transport = transport(&server);
    {
        let hung = post(&transport, [0]);
        tokio::pin!(hung);
        let seen = server.wait_until("request", |ledger| ledger.requests.len() == 1);
        tokio::select! {
            _ = &mut hung => panic!("it never answers"),
            () = seen => {}
        }
    }
    server.set_mode(Mode::Ok);
    settle(&transport, &[0]).await;
    assert_eq!(server.ledger().connections, 2);
}

/// B25: an ack is read to its end or not at all.
#[tokio::test]
async fn an_answer_of_success_that_is_too_long_is_no_answer() {
    let server = Server::start(Mode::Fixed(Fixed::new(202).body(vec![b' '; MAX_RESPONSE])));
    let transport = transport(&server);
    let answer = post(&transport, [0]).await.expect("just short enough");
    assert_eq!(answer.body.len(), MAX_RESPONSE);
    server.set_mode(Mode::Fixed(Fixed::new(202).body(vec![b' '; MAX_RESPONSE + 1])));
    let error = post(&transport, [0]).await.expect_err("one too many").to_string();
    assert_eq!(error, "the answer, status 202, is over 65536 bytes: no ack is that long");
    // Without a length in front, as long as the server likes.
    let mut endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    endless.resize(4 * MAX_RESPONSE, b' ');
    let transport = HttpTransport::new(&says(endless).await).expect("an endpoint");
    assert!(post(&transport, [0]).await.is_err());
}

/// B21: the status decides, however long the page that comes with it, and even where the page breaks off.
#[tokio::test]
async fn the_page_of_a_failure_is_cut_and_its_status_counts() {
    let server = Server::start(Mode::Fixed(Fixed::new(413).body(vec![b'<'; 3 * MAX_RESPONSE])));
    let answer = post(&transport(&server), [0]).await.expect("an answer");
    assert_eq!((answer.status, answer.body.len()), (413, MAX_RESPONSE));
    let broken = says(b"HTTP/1.1 400 Bad\r\ncontent-length: 100\r\n\r\nno".to_vec()).await;
    let transport = HttpTransport::new(&broken).expect("an endpoint");
    let answer = post(&transport, [0]).await.expect("an answer");
    assert_eq!((answer.status, answer.body.as_slice()), (400, &b"no"[..]));
}

#[tokio::test]
async fn an_ack_that_breaks_off_is_no_answer() {
    let server = Server::start(Mode::LostAck);
    let error = post(&transport(&server), [0]).await.expect_err("no whole answer").to_string();
    assert!(error.starts_with("the answer broke off: "), "{error}");
}

#[tokio::test]
async fn what_is_no_http_is_an_error() {
    for answer in [&b""[..], b"SSH-2.0-OpenSSH_9.9\r\n", b"HTTP/1.1 99999 Odd\r\n\r\n"] {
        let transport = HttpTransport::new(&says(answer.to_vec()).await).expect("an endpoint");
        assert!(post(&transport, [0]).await.is_err());
    }
}

#[tokio::test]
async fn a_hundred_requests_share_two_connections() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    let mut senders = JoinSet::new();
    for half in 0..2 {
        let transport = transport.clone();
        senders.spawn(async move {
            for seq in 0..50 {
                settle(&transport, &[half * 50 + seq]).await;
            }
        });
    }
    senders.join_all().await;
    let ledger = server.ledger();
    assert_eq!((ledger.requests.len(), ledger.accepted.len()), (100, 100));
    assert!(ledger.connections <= 2, "{}", ledger.summary());
}

#[test]
fn one_transport_serves_runtimes_that_come_and_go_and_is_dropped_outside_of_any() {
    let server = Server::start(Mode::Ok);
    let transport = transport(&server);
    for seq in 0..3 {
        small_runtime().block_on(settle(&transport, &[seq]));
    }
    drop(transport);
    assert_eq!(server.ledger().accepted.len(), 3);
}

#[test]
fn outside_of_a_runtime_there_is_an_error_and_no_panic() {
    let transport = HttpTransport::new("http://127.0.0.1:9/").expect("an endpoint");
    let mut sending = transport.send(request(b"{}"));
    match sending.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(error)) => assert!(error.to_string().contains("runtime"), "{error}"),
        other => panic!("{other:?}"),
    }
}

/// The accept queue of this server is full, so the kernel leaves a connection without an answer.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_given_up() {
    use tokio::net::{TcpSocket, TcpStream};

    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let listener = socket.listen(1).expect("a queue");
    let address = listener.local_addr().expect("an address");
    let mut queued = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
        queued.push(connected.expect("a place in the queue"));
        assert!(queued.len() < 100, "the queue is never full");
    }
    let limit = Duration::from_millis(300);
    let transport = HttpTransport::with_connect_timeout(&format!("http://{address}/"), limit);
    let transport = transport.expect("an endpoint");
    let error = timeout(Duration::from_secs(30), post(&transport, [0])).await.expect("it gives up");
    let error = error.expect_err("no connection").to_string();
    assert!(error.contains("no connection within 300ms"), "{error}");
}

/// The handshake counts as connecting: this server takes the connection and says nothing.
#[cfg(feature = "tls")]
#[tokio::test]
async fn a_tls_handshake_that_does_not_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}/", listener.local_addr().expect("an address"));
    let limit = Duration::from_millis(300);
    let transport = match HttpTransport::with_connect_timeout(&url, limit) {
        Ok(transport) => transport,
        // A bare container has no root certificates.
        Err(error) => return assert!(error.to_string().contains("root certificates"), "{error}"),
    };
    let error = timeout(Duration::from_secs(30), post(&transport, [0])).await.expect("it gives up");
    let error = error.expect_err("no connection").to_string();
    assert!(error.contains("no connection within 300ms"), "{error}");
}

#[test]
fn an_address_that_is_not_taken_says_why_and_keeps_secrets() {
    let cases = [
        ("", r#"is "", which is no URL"#),
        ("collect.example/v1", r#"is "collect.example/v1", which is no URL"#),
        ("/v1/events", r#"is "/v1/events", which has no scheme"#),
        ("ftp://host/", r#"is "ftp://host/", which is of another scheme"#),
        ("http://", r#"is "http://", which is no URL"#),
        ("http:///v1", r#"is "http:///v1", which is no URL"#),
        ("http://bücher.example/", r#"is "http://bücher.example/", which is no URL"#),
        (
            "http://host:0/",
            r#"is "http://host:0/", whose port is invalid: a port from 1 to 65535 is allowed"#,
        ),
        ("http://host:/", r#"is "http://host:/", whose port is invalid"#),
        ("http://host/#top", r#"is "http://host/#hidden", which has a fragment"#),
        ("http://host/?key=secret", r#"is "http://host/?hidden", which has a query"#),
        ("http://me:secret@host/", r#"is "http://hidden@host/", which holds credentials"#),
        ("http://secret@host/", r#"is "http://hidden@host/", which holds credentials"#),
        ("http://me:sec#ret@host/", r#"is "http://hidden", which has a fragment"#),
        ("http://me:secret/@host/", r#"is "http://hidden@host/", whose port is invalid"#),
    ];
    for (url, expected) in cases {
        let error = HttpTransport::new(url).expect_err(url);
        let text = error.to_string();
        assert!(text.starts_with(&format!("endpoint url {expected}")), "{text}");
        assert!(text.ends_with("allowed"), "{text}");
        assert!(!format!("{text} {error:?}").contains("secret"), "{text}");
    }
    for url in ["http://host", "HTTP://host:8080/v1/events", "http://[::1]:80/", "http://127.0.0.1/a/b/"] {
        HttpTransport::new(url).expect(url);
    }
}

#[test]
fn https_without_the_feature_names_the_feature() {
    let made = HttpTransport::new("https://host/v1");
    if cfg!(feature = "tls") {
        let roots = |error: &str| error.contains("root certificates");
        assert!(made.map_err(|error| error.to_string()).map_or_else(|error| roots(&error), |_| true));
    } else {
        let error = made.expect_err("no TLS").to_string();
        assert!(error.contains("needs the feature `tls`"), "{error}");
    }
}
