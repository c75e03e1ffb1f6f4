//! How many stalls the probe sees and names, and how many it claims that were none: a table with rates.
//!
//! `cargo run --release --example detection [-- --stalls 200]`. Stalls of 60 to 400 ms are injected into runtimes of both
//! kinds, each scenario on a runtime and a thread of its own, all at once: they hold a worker without burning CPU. Then
//! what must not be claimed: an idle runtime, blocking tasks, and many short polls. Each alone and beside a governed task that
//! polls for 4 ms at a time. At the end, what the probe costs. Fails where a stall was missed or claimed; with 200 stalls it
//! takes three minutes, with 20 half of that.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

mod cost;
mod scenario;

use std::error::Error;
use std::thread;

use scenario::{Kind, Scenario, Seen};

const USAGE: &str = "usage: detection [--stalls N]   N: stalls a scenario, 1 to 1000, default 200";

fn stalls() -> Result<usize, String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Ok(200),
        ["--help" | "-h"] => Err(USAGE.to_owned()),
        ["--stalls", number] => number
            .parse()
            .ok()
            .filter(|number| (1..=1000).contains(number))
            .ok_or_else(|| format!("--stalls: {number}; allowed: 1 to 1000\n{USAGE}")),
        _ => Err(format!("{}: no such option\n{USAGE}", args.join(" "))),
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let stalls = match stalls() {
        Ok(stalls) => stalls,
        Err(text) => {
            println!("{text}");
            return Ok(());
        }
    };
    println!("{stalls} stalls of 60 to 400 ms a scenario; seen, and named as what made them\n");
    println!(
        "{:<16} {:<39} {:>9} {:>9} {:>9} {:>9}",
        "runtime", "scenario", "injected", "seen", "named", "false"
    );
    let running: Vec<_> =
        Scenario::all().map(|scenario| (scenario, thread::spawn(move || scenario.run(stalls)))).collect();
    let mut total = Seen::default();
    for (scenario, thread) in running {
        let seen = thread.join().map_err(|_| format!("{scenario:?} panicked"))??;
        let rate = |part: usize| match seen.injected {
            0 => "-".to_owned(),
            all => format!("{:.1} %", 100.0 * part as f64 / all as f64),
        };
        println!(
            "{:<16} {:<39} {:>9} {:>9} {:>9} {:>9}",
            scenario.runtime(),
            scenario.name(),
            seen.injected,
            rate(seen.seen),
            rate(seen.named),
            seen.claimed
        );
        if scenario.kind != Kind::RootUnobserved {
            total.add(&seen);
        }
    }
    println!(
        "\nall but the last: {} injected, {:.2} % seen, {:.2} % named, {} claimed that were none",
        total.injected,
        100.0 * total.seen as f64 / total.injected as f64,
        100.0 * total.named as f64 / total.injected as f64,
        total.claimed
    );
    cost::print()?;
    let missed = total.injected - total.seen;
    if missed + total.claimed > 0 {
        return Err(format!("{missed} stalls not seen, {} claimed that were none", total.claimed).into());
    }
    Ok(())
}
