//! What comes back from the network, when it comes and in which order, and what is said of it.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use afterboot_beacon::testing::{Reply, ScriptedTransport, Seen};
use afterboot_beacon::wire::Ack;
use afterboot_beacon::{Beacon, BeaconBuilder, Response};
use serde_json::json;
use tokio::runtime::{Builder, Handle};
use tokio::time::{Instant, sleep};

use crate::common::{ms, secs};

fn virtually(server: &ScriptedTransport) -> BeaconBuilder {
    Beacon::builder("shop").transport(server.clone()).runtime(Handle::current()).wall_from_tokio().seed(1)
}

/// The name that this try was sent under.
fn name(seen: &Seen) -> Option<String> {
    let pairs = seen.headers.pairs();
    pairs.into_iter().find(|(name, _)| *name == "afterboot-batch").map(|(_, value)| value)
}

fn answer(body: Vec<u8>) -> Reply {
    Reply::Response(Response::new(202).with_body(body))
}

/// B32: the answer to the first batch comes a second time, as that to the second.
#[tokio::test(start_paused = true)]
async fn the_ack_of_another_batch_settles_nothing() {
    let mut first = None;
    let mut taken = Vec::new();
    let (said, taken_by_server) = mpsc::channel();
    let server = ScriptedTransport::new(move |seen| {
        let ack = json!({"wire": 1, "events": 1, "accepted": [[0, 0]], "batch": name(seen), "kill": "e1"});
        let ack = serde_json::to_vec(&ack).expect("JSON");
        if taken.len() == 1
            && let Some(first) = first.take()
        {
            return answer(first);
        }
        first.get_or_insert_with(|| ack.clone());
        taken.extend(seen.batch.events.iter().map(|event| event.seq));
        let _ = said.send(taken.clone());
        answer(ack)
    });
    let beacon = virtually(&server).build().unwrap();
    let mut events = beacon.events();
    for n in 0..2 {
        beacon.post("click", &n).urgent();
        sleep(ms(100)).await;
    }
    sleep(secs(10)).await;
    assert_eq!(beacon.counters().acked, 2);
    assert_eq!(taken_by_server.try_iter().last(), Some(vec![0, 1]), "both are at the server");
    let mut kills = 0;
    while let Some(event) = events.try_next() {
        kills += usize::from(format!("{event:?}").contains("Kill"));
    }
    assert_eq!(kills, 2, "what travels with an ack of another batch is not obeyed either");
}

/// B32: a server that does not say which batch it means is believed, as ever.
#[tokio::test(start_paused = true)]
async fn an_ack_without_a_name_is_an_ack() {
    let server = ScriptedTransport::new(|seen| {
        let ack = Ack::all_accepted(seen.batch.events.len());
        answer(serde_json::to_vec(&ack).expect("JSON"))
    });
    let beacon = virtually(&server).build().unwrap();
    beacon.post("click", &1).urgent();
    sleep(ms(100)).await;
    assert_eq!((beacon.counters().acked, server.requests()), (1, 1));
}

/// What the log says of the levels from warnings on, or of everything.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    posts_to: Option<Beacon>,
    everything: bool,
}

struct Line(String);

impl tracing::field::Visit for Line {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}

impl Log {
    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        self.everything || *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
        if let Some(beacon) = &self.posts_to {
            beacon.post("log", event.metadata().name()).urgent();
        }
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// Reads one request; its ack.
fn read_request(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length?.trim().parse().ok()?;
            if bytes.len() >= head + length {
                let body = afterboot_beacon::wire::gunzip(&bytes[head..], 1 << 20).ok()?;
                let batch = afterboot_beacon::wire::Batch::parse(&body).ok()?;
                return serde_json::to_vec(&Ack::all_accepted(batch.events.len())).ok();
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// A server whose answers are written by this, request by request on each connection.
fn by_hand(answers: impl Fn(&mut TcpStream, Vec<u8>) + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/events", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answers) = (stream, answers.clone()) else { return };
            thread::spawn(move || {
                while let Some(ack) = read_request(&mut stream) {
                    answers(&mut stream, ack);
                }
            });
        }
    });
    url
}

fn head(ack: &[u8]) -> Vec<u8> {
    format!("HTTP/1.1 202 Accepted\r\ncontent-length: {}\r\n\r\n", ack.len()).into_bytes()
}

/// B33: the connection's own task logs as well, when it reads the rest of an answer and when it ends.
#[test]
fn nothing_that_runs_for_the_client_is_heard_by_the_application() {
    let url = by_hand(|stream, ack| {
        let _ = stream.write_all(&head(&ack));
        thread::park_timeout(ms(30));
        let _ = stream.write_all(&ack);
    });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (hears, posts) = (Log { everything: true, ..Log::default() }, Arc::new(AtomicUsize::new(0)));
    let _heard = tracing::subscriber::set_default(hears.clone());
    let requests = runtime.block_on(async {
        let beacon = Beacon::builder("shop").endpoint(&url).runtime(Handle::current()).build().unwrap();
        let log = Log { posts_to: Some(beacon.clone()), ..hears.clone() };
        let _posts = tracing::subscriber::set_default(log);
        for n in 0..3 {
            beacon.post("click", &n).urgent();
            posts.fetch_add(1, Ordering::Relaxed);
            let patience = Instant::now() + secs(20);
            while beacon.counters().acked < n + 1 && Instant::now() < patience {
                sleep(ms(5)).await;
            }
        }
        beacon.counters().posted
    });
    drop(runtime);
    let heard = hears.lines();
    let clients: Vec<_> = heard.iter().filter(|line| line.contains("hyper")).collect();
    assert!(clients.is_empty(), "{} lines, as {}", clients.len(), clients[0]);
    assert_eq!(requests, posts.load(Ordering::Relaxed) as u64);
}

/// B34: the process is stopped while a request is out, and goes on when its time is up and the answer is there.
#[test]
fn an_answer_that_came_while_the_process_was_stopped_is_read() {
    let (came, has_come) = mpsc::channel();
    let (stopped, is_stopped) = mpsc::channel();
    let (answered, is_answered) = mpsc::channel();
    let is_stopped = Arc::new(Mutex::new(is_stopped));
    let url = by_hand(move |stream, ack| {
        let _ = came.send(());
        let _ = is_stopped.lock().unwrap().recv();
        let mut whole = b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for piece in ack.chunks(8) {
            whole.extend(
                format!("{:x}\r\n", piece.len()).bytes().chain(piece.iter().copied()).chain(*b"\r\n"),
            );
        }
        let _ = stream.write_all(&[&whole[..], b"0\r\n\r\n"].concat());
        let _ = answered.send(());
    });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let limit = ms(400);
        let builder = Beacon::builder("shop").endpoint(&url).runtime(Handle::current());
        let beacon = builder.request_time_limit(limit).build().unwrap();
        for n in 0..2_u64 {
            beacon.post("click", &n).urgent();
            let began = Instant::now();
            while has_come.try_recv().is_err() && began.elapsed() < secs(20) {
                tokio::task::yield_now().await;
            }
            // Nothing runs from here on until long after the request's time.
            stopped.send(()).unwrap();
            is_answered.recv_timeout(secs(20)).unwrap();
            while began.elapsed() < 3 * limit {
                thread::park_timeout(ms(10));
            }
            let patience = Instant::now() + secs(20);
            while beacon.counters().acked < n + 1 && Instant::now() < patience {
                sleep(ms(5)).await;
            }
            let health = beacon.health();
            assert_eq!((beacon.counters().acked, &health.last_error), (n + 1, &None), "{health:?}");
            assert_eq!(health.quality, Some(1.0), "it was not sent again");
        }
    });
}

/// B35: one line when it begins, one when it is over.
#[tokio::test(start_paused = true)]
async fn an_outage_is_told_when_it_begins_and_when_it_is_over() {
    let up = Instant::now() + secs(7);
    let server =
        ScriptedTransport::new(move |_| if Instant::now() < up { Reply::Broken } else { Reply::Accept });
    let log = Log::default();
    let _heard = tracing::subscriber::set_default(log.clone());
    let beacon = virtually(&server).build().unwrap();
    for n in 0..5 {
        beacon.post("click", &n).urgent();
    }
    sleep(secs(1)).await;
    assert_eq!(log.lines().len(), 1, "{:?}", log.lines());
    beacon.post("click", &5).urgent();
    sleep(secs(60)).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("connection reset") && lines[0].contains("waiting=5"), "{lines:?}");
    let after = lines[1].split("after=").nth(1).and_then(|rest| rest.split('s').next()?.parse::<f64>().ok());
    assert!(after.is_some_and(|after| (7.0..16.0).contains(&after)), "{lines:?}");
}

/// B35: a held endpoint is told once, not at each try.
#[tokio::test(start_paused = true)]
async fn a_held_endpoint_is_told_once_for_each_reason() {
    let began = Instant::now();
    let server = ScriptedTransport::new(move |_| match began.elapsed().as_secs() {
        0..1000 => Reply::Status(401),
        1000..2000 => Reply::Status(403),
        _ => Reply::Accept,
    });
    let log = Log::default();
    let _heard = tracing::subscriber::set_default(log.clone());
    let beacon = virtually(&server).build().unwrap();
    beacon.post("click", &1).urgent();
    sleep(secs(3600)).await;
    let lines = log.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].contains("status 401") && lines[1].contains("status 403"), "{lines:?}");
    assert!(lines[2].contains("over"), "{lines:?}");
}
