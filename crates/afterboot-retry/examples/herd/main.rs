//! The thundering herd: a thousand clients lose their server together. How do they come back?
//!
//! ```sh
//! cargo run --example herd
//! cargo run --example herd -- --outage 300 --svg herd.svg
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints")]

mod options;
mod rivals;
mod schedules;
mod sim;
mod svg;

use std::process::ExitCode;
use std::time::Duration;

use options::Options;
use schedules::Named;
use sim::Summary;

fn main() -> ExitCode {
    match options::parse(std::env::args().skip(1)) {
        Ok(None) => println!("{}", options::HELP),
        Ok(Some(options)) => {
            if let Err(error) = show(&options) {
                eprintln!("herd: {error}");
                return ExitCode::FAILURE;
            }
        }
        Err(problem) => {
            eprintln!("herd: {problem}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn show(options: &Options) -> std::io::Result<()> {
    let mut schedules = schedules::all(options.processes);
    if let Some(file) = &options.svg {
        std::fs::write(file, svg::draw(options, &schedules))?;
    }
    if options.rivals {
        schedules.extend(rivals::all());
    }
    if options.json {
        for schedule in &schedules {
            println!("{}", json(options, schedule));
        }
        return Ok(());
    }
    schedules.extend(schedules::beside(options.processes));
    let (clients, outage, seeds) = (options.world.clients, options.world.outage, options.seeds);
    println!("{clients} clients, server down for {outage:?}, mean of {seeds} seeds\n");
    println!(
        "| {:<44} | {:>7} | {:>13} | {:>9} | {:>8} |",
        "schedule", "retries", "peak / 100 ms", "mean wait", "p99 wait"
    );
    println!("| :{:-<43} | {:->6}: | {:->12}: | {:->8}: | {:->7}: |", "", "", "", "", "");
    for schedule in &schedules {
        let Summary { retries, peak, mean_wait, p99_wait } =
            sim::summary(options.world, &schedule.behaviour, seeds);
        let (mean, p99) = (seconds(mean_wait), seconds(p99_wait));
        println!("| {:<44} | {retries:>7.0} | {peak:>13.0} | {mean:>9} | {p99:>8} |", schedule.title);
    }
    Ok(())
}

/// A run whose length depends on chance is told no more exactly than it is known.
fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

/// Names need no escaping, and numbers are finite.
fn json(options: &Options, schedule: &Named) -> String {
    let summary = sim::summary(options.world, &schedule.behaviour, options.seeds);
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    format!(
        r#"{{"schedule":"{}","clients":{},"outage_ms":{},"retries":{:.1},"peak_per_100ms":{:.1},"mean_wait_ms":{:.1},"p99_wait_ms":{:.1},"seeds":{}}}"#,
        schedule.name,
        options.world.clients,
        options.world.outage.as_millis(),
        summary.retries,
        summary.peak,
        millis(summary.mean_wait),
        millis(summary.p99_wait),
        options.seeds,
    )
}
