//! A boot sequence as a real application would write it: configuration, a listener that answers at once, side tasks in
//! their order, readiness, shutdown on a signal or a deadline, and the report.
//!
//! `cargo run --example embedded`, and with `AFTERBOOT='concurrency=1,pulse=20ms' cargo run --example embedded`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use afterboot::{Governor, Profile, Task, TaskHandle, yield_if_due};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What an application reads from its file; here, what it falls back to.
struct Config {
    boot: Profile,
    telemetry: bool,
    grace: Duration,
}

impl Config {
    fn load() -> Result<Config, Box<dyn Error>> {
        Ok(Config {
            boot: "concurrency=2,delay=1ms,pulse=1ms".parse()?,
            telemetry: false,
            grace: Duration::from_secs(2),
        })
    }
}

/// The side tasks' results, each where it is needed.
#[derive(Clone)]
struct App {
    governor: Governor,
    index: TaskHandle<Index>,
}

struct Index(HashMap<&'static str, Vec<usize>>);

const TEXT: &str = include_str!("../src/lib.rs");

/// Work that burns CPU gives its tick back now and then.
async fn build_index() -> Result<Index, Box<dyn Error + Send + Sync>> {
    let mut index: HashMap<&'static str, Vec<usize>> = HashMap::new();
    for (number, line) in TEXT.lines().enumerate() {
        for word in line.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 3) {
            index.entry(word).or_default().push(number + 1);
        }
        yield_if_due().await;
    }
    Ok(Index(index))
}

async fn migrate_cache() -> Result<(), Box<dyn Error + Send + Sync>> {
    tokio::time::sleep(Duration::from_millis(30)).await;
    Err("cache: version 3 is newer than this program".into())
}

/// Everything that may come after the first answer.
fn declare(governor: &Governor, config: &Config) -> TaskHandle<Index> {
    let cache = governor.govern(Task::new("migrate cache", migrate_cache));
    governor.govern(Task::new("warm cache", || async {}).after(&cache));
    governor.govern(Task::new("report cache", || async {}).after_settled(&cache));
    governor.govern(Task::new("telemetry", || async {}).when(config.telemetry));
    governor.govern(Task::blocking("old logs", || std::fs::read_dir(".").map(|files| files.count())).idle());
    governor.govern(Task::new("search index", build_index).idle().timeout(Duration::from_secs(30)))
}

/// `GET /search/word`: needs the index, so it demands it. The first caller does not wait for a quiet moment.
async fn answer(app: App, mut stream: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    let _in_flight = app.governor.in_flight("request");
    let mut request = [0; 1024];
    let read = stream.read(&mut request).await?;
    let line = String::from_utf8_lossy(&request[..read]);
    let path = line.split_whitespace().nth(1).unwrap_or("/");
    let body = match path.strip_prefix("/search/") {
        Some(word) => {
            let index = app.index.demand().await?;
            format!(
                "{word}: lines {:?}\n",
                index.0.get(word).map_or(&[][..], |lines| &lines[..lines.len().min(5)])
            )
        }
        None if path == "/readyz" => format!("{}\n", app.governor.snapshot()),
        None => "hello\n".to_owned(),
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(())
}

async fn get(address: std::net::SocketAddr, path: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.split("\r\n\r\n").nth(1).unwrap_or_default().trim().to_owned())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = Config::load()?;
    let governor = Governor::builder()
        .name("embedded")
        .profile(config.boot.clone())
        .overrides_from_env("AFTERBOOT")
        .await_ready()
        .quiet(Duration::from_millis(300))
        .build()?;

    let index = declare(&governor, &config);
    let app = App { governor: governor.clone(), index };

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(app.clone(), stream));
        }
    });
    governor.ready(); // the first request can be answered
    let run = governor.report();

    // In place of users: three requests, of which one needs a side task's result.
    for path in ["/", "/search/governor", "/readyz"] {
        println!("GET {path} -> {}", get(address, path).await?);
    }

    // In place of ctrl-c: leave once everything has run, at the latest after the time of grace.
    let report = match tokio::time::timeout(config.grace, run.finished()).await {
        Ok(report) => report,
        Err(_) => governor.shutdown(Duration::from_millis(500)).await,
    };
    serving.abort();
    println!("\n{report}");
    let failed = Arc::<str>::from("cache: version 3 is newer than this program");
    assert_eq!(
        report.task("migrate cache").and_then(|t| t.outcome.clone()),
        Some(afterboot::Outcome::Failed(failed))
    );
    Ok(())
}
