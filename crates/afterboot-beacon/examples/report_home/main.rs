//! A governed boot that reports itself home: the arm before anything is delayed, the tasks in chunks of at most 32 KB,
//! the end. All of it durable, so that a process that dies after its boot has reported it all the same.
//!
//! `cargo run -p afterboot-beacon --example report_home` starts a collector of its own on loopback and shows what came;
//! `-- --endpoint URL` sends to another.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example's result")]

mod shape;

#[path = "../../tests/support/server.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod collector;

use std::env;
use std::error::Error;
use std::process;
use std::time::Duration;

use afterboot::{Governor, Monkey, Task};
use afterboot_beacon::wire::Counters;
use afterboot_beacon::{Beacon, SpoolOptions};
use tokio::time::sleep;

use crate::collector::{Mode, Server};
use crate::shape::{Arm, Boot, REPORTS_ARE_KEPT};

/// A boot with enough tasks that one event would be too large for a batch.
const TASKS: usize = 400;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let own = match endpoint() {
        Ok(Some(url)) => return boot(&url).await.map(|counters| println!("{counters:?}")),
        Ok(None) => Server::start(Mode::Ok),
        Err(wrong) => {
            eprintln!("report_home: {wrong}");
            process::exit(2);
        }
    };
    let counters = boot(&own.url()).await?;
    println!("\nwhat came");
    let ledger = own.ledger();
    for stored in ledger.accepted.values() {
        let data = stored.data.to_string();
        println!("  {:<12} {:>6} bytes  {}…", stored.route, data.len(), &data[..data.len().min(70)]);
    }
    let sent: usize = ledger.requests.iter().map(|request| request.bytes).sum();
    println!(
        "\n{} events in {} requests, {sent} bytes compressed; acked {}, ledger {}",
        ledger.accepted.len(),
        ledger.requests.len(),
        counters.acked,
        if counters.balances() { "balances" } else { "DOES NOT BALANCE" }
    );
    Ok(())
}

fn endpoint() -> Result<Option<String>, String> {
    let mut args = env::args().skip(1);
    match (args.next().as_deref(), args.next()) {
        (None, _) => Ok(None),
        (Some("--endpoint"), Some(url)) => Ok(Some(url)),
        (Some("--endpoint"), None) => Err("--endpoint needs a URL".to_owned()),
        (Some(other), _) => Err(format!("unknown option {other:?}: --endpoint URL is allowed")),
    }
}

async fn boot(url: &str) -> Result<Counters, Box<dyn Error + Send + Sync>> {
    let spool = tempfile::tempdir()?;
    let beacon = Beacon::builder("report-home")
        .endpoint(url)
        .spool(SpoolOptions::new(spool.path().join("spool")))
        .build()?;

    let governor =
        Governor::builder().name("report home").monkey(Monkey::random(Duration::from_millis(400))).build()?;
    for n in 0..TASKS {
        let work = move || async move { sleep(Duration::from_millis(n as u64 % 7)).await };
        governor.govern(Task::new(format!("side task {n}"), work));
    }
    governor.govern(Task::new("licence check", || async { Err::<(), _>("connection refused") }));
    let run = governor.report();

    // Before any outcome is known, or a fast boot would choose its own arm.
    let boot = Boot::new();
    let receipt =
        beacon.post("boot.arm", &Arm::of(&boot, &run.current())).vital().expiry(REPORTS_ARE_KEPT).durable();
    receipt.await?;
    println!("the arm is on disk before the boot has ended");

    let report = run.finished().await;
    let mut receipts = Vec::new();
    let chunks = boot.chunks(&report)?;
    for chunk in &chunks {
        receipts.push(beacon.post("boot.tasks", chunk).expiry(REPORTS_ARE_KEPT).durable());
    }
    let end = boot.end(&report, chunks.len())?;
    receipts.push(beacon.post("boot.end", &end).expiry(REPORTS_ARE_KEPT).durable());
    for receipt in receipts {
        receipt.await?;
    }
    println!("{} tasks in {} chunks and the end are on disk", report.tasks.len(), chunks.len());
    Ok(beacon.shutdown(Duration::from_secs(5)).await)
}
