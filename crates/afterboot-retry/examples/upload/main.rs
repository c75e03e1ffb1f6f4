//! A chunked upload by offset over loopback HTTP, to a server that fails at random and restarts.
//!
//! The upload is idempotent because each chunk says where it belongs, and each attempt begins by asking how far the server
//! is: what was stored before its answer was lost is not sent again, and would be stored once if it were. Each stored chunk is progress, so the next failure waits the first delay again, while the number of
//! retries in all stays bounded. Without a network no try is made at all.
//!
//! ```sh
//! cargo run --example upload --features tokio
//! cargo run --example upload --features tokio -- 7    # another seed
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

mod http;
mod server;

use std::fmt;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afterboot_retry::{
    Attempt, BackoffPolicy, Failure, Limits, RetryError, RetryEvent, RetryLoop, RetryPolicy, Schedule,
    parse_retry_after_now,
};
use http::{Request, Response};
use server::Server;

const CHUNK: usize = 16 * 1024;
const FILE: usize = 40 * CHUNK + 123;
/// The example ends by itself, whatever the server does.
const AT_MOST: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    match run(seed, &Arc::new(AtomicBool::new(true))).await {
        Ok(told) => {
            println!("{told}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("upload: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The uploader's schedule, twenty times as fast, so that the example is.
fn policy() -> RetryPolicy {
    let ms = Duration::from_millis;
    let backoff = BackoffPolicy::builder()
        .schedule(Schedule::Exponential { initial: ms(20), base: ms(5), multiplier: 1.5 })
        .max_delay(ms(400))
        .build()
        .expect("the schedule is valid");
    RetryPolicy::from(backoff)
        .limits(Limits::default().max_delay_retries(30).max_retries(500))
        .retry_after_spread(ms(100))
}

async fn run(seed: u64, online: &Arc<AtomicBool>) -> Result<String, String> {
    let file: Arc<[u8]> = (0..FILE).map(|at| (at * 31 % 251) as u8).collect();
    let server = Server::start(seed).await.map_err(|error| format!("no server: {error}"))?;
    let counts = Arc::new(Counts::default());
    let uploaded = upload(server.address(), file.clone(), online, counts.clone()).await;
    let stored = server.stop();
    uploaded.map_err(|error| error.to_string())?;
    if stored.bytes != *file {
        return Err(format!(
            "seed {seed}: the server holds {} bytes that are not the file",
            stored.bytes.len()
        ));
    }
    let retries = counts.retries.load(Ordering::Relaxed);
    let asked = counts.asked.load(Ordering::Relaxed);
    Ok(format!(
        "stored {FILE} bytes in chunks of {CHUNK} with {retries} retries ({asked} as the server asked), over {} failures, \
         {} of them after the chunk was stored, and {} restarts",
        stored.failures, stored.lost_answers, stored.restarts
    ))
}

#[derive(Default)]
struct Counts {
    retries: std::sync::atomic::AtomicU32,
    asked: std::sync::atomic::AtomicU32,
}

async fn upload(
    server: SocketAddr,
    file: Arc<[u8]>,
    online: &Arc<AtomicBool>,
    counts: Arc<Counts>,
) -> Result<(), RetryError<UploadError>> {
    RetryLoop::new(&policy())
        .attempt_timeout(Duration::from_secs(20))
        .timeout(AT_MOST)
        .on_event(move |event| {
            if let RetryEvent::Waiting(wait) = event {
                counts.retries.fetch_add(1, Ordering::Relaxed);
                counts.asked.fetch_add(u32::from(wait.asked.is_some()), Ordering::Relaxed);
            }
        })
        .run(
            |attempt| send_the_rest(server, file.clone(), attempt),
            |error| Failure::transient_if(online.load(Ordering::Relaxed)).retry_after(error.retry_after),
        )
        .await
}

/// Asks how far the server is and sends from there, a chunk a request.
async fn send_the_rest(server: SocketAddr, file: Arc<[u8]>, attempt: Attempt) -> Result<(), UploadError> {
    let mut offset = offset_of(&http::ask(server, &Request::head("/upload")).await?)?;
    while offset < file.len() {
        let chunk = &file[offset..file.len().min(offset + CHUNK)];
        let answer = http::ask(server, &Request::put("/upload", offset, chunk)).await?;
        // Progress is what the server says it holds, not what was sent.
        let stored = offset_of(&answer)?;
        if stored > offset {
            attempt.on_progress();
        }
        offset = stored;
    }
    Ok(())
}

fn offset_of(answer: &Response) -> Result<usize, UploadError> {
    if answer.status >= 500 {
        let retry_after = answer.header("Retry-After").and_then(parse_retry_after_now);
        return Err(UploadError { what: format!("status {}", answer.status), retry_after });
    }
    let offset = answer.header("Upload-Offset").and_then(|offset| offset.parse().ok());
    offset.ok_or_else(|| UploadError { what: "an answer without an offset".to_owned(), retry_after: None })
}

#[derive(Debug)]
struct UploadError {
    what: String,
    retry_after: Option<Duration>,
}

impl From<std::io::Error> for UploadError {
    fn from(error: std::io::Error) -> UploadError {
        UploadError { what: error.to_string(), retry_after: None }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for UploadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_file_arrives_whole_however_the_server_fails() {
        for seed in 1..=3 {
            let told = run(seed, &Arc::new(AtomicBool::new(true))).await;
            assert!(told.as_ref().is_ok_and(|told| !told.contains(" 0 failures")), "seed {seed}: {told:?}");
        }
    }

    #[tokio::test]
    async fn without_a_network_no_retry_is_made() {
        let error = run(1, &Arc::new(AtomicBool::new(false))).await.unwrap_err();
        assert!(error.starts_with("gave up after 0 retries: predicate"), "{error}");
    }
}
