//! What if: a recorded boot, played again in virtual time under a grid of profiles.
//!
//! ```text
//! cargo run --features serde,replay --example tune -- --record boot.json   # ten tasks, recorded here and now
//! cargo run --features serde,replay --example tune -- boot.json            # a table: concurrency by pulse
//! cargo run --features serde,replay --example tune -- boot.json --json     # the same for a program
//! ```
//!
//! To record your own boot: `Governor::builder().record_segments()`, then write `Report::to_json()` to a file. The row of
//! the recorded profile shows how near a replay comes to it; the others are estimates, on one thread.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example's result")]

use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs};

use afterboot::{Governor, Profile, Queue, Replay, Report, Task};
use tokio::time::sleep;

const USAGE: &str = "usage: tune REPORT.json [--json]
       tune --record FILE";
const CONCURRENCY: [usize; 5] = [1, 2, 3, 5, 8];
const PULSE: [u64; 4] = [0, 1, 5, 20];

type Failure = Box<dyn std::error::Error + Send + Sync>;

enum Command {
    Tune { file: String, json: bool },
    Record { file: String },
    Help,
}

fn command(args: &[String]) -> Result<Command, String> {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--help" | "-h"] => Ok(Command::Help),
        ["--record", file] if !file.starts_with('-') => Ok(Command::Record { file: file.to_owned() }),
        [file] if !file.starts_with('-') => Ok(Command::Tune { file: file.to_owned(), json: false }),
        [file, "--json"] | ["--json", file] if !file.starts_with('-') => {
            Ok(Command::Tune { file: file.to_owned(), json: true })
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let done = command(&args).map_err(Failure::from).and_then(|command| match command {
        Command::Help => {
            println!("{USAGE}");
            Ok(())
        }
        Command::Record { file } => record(&file),
        Command::Tune { file, json } => tune(&file, json),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tune: {error}");
            ExitCode::from(2)
        }
    }
}

// --- reading -------------------------------------------------------------------------------------------------------

fn read(file: &str) -> Result<Report, Failure> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("{file}: not JSON: {error}"))?;
    match json.get("version").and_then(serde_json::Value::as_u64) {
        Some(1) => {}
        Some(version) => {
            return Err(format!("{file}: a report of version {version}; this reads version 1").into());
        }
        None => {
            return Err(format!("{file}: not a report: it has no version; write `Report::to_json()`").into());
        }
    }
    Ok(serde_json::from_value(json).map_err(|error| format!("{file}: not a report: {error}"))?)
}

// --- the grid ------------------------------------------------------------------------------------------------------

/// One profile of the grid.
struct Row {
    profile: Profile,
    recorded: bool,
    replay: Replay,
}

/// The recorded profile first, then the grid with everything else as recorded.
fn grid(report: &Report) -> Result<Vec<Row>, Failure> {
    let recorded: Profile = report.profile.parse()?;
    let mut profiles = vec![recorded.clone()];
    for concurrency in CONCURRENCY {
        for pulse in PULSE {
            let profile = recorded.clone().concurrency(concurrency).pulse(Duration::from_millis(pulse));
            if profile != recorded {
                profiles.push(profile);
            }
        }
    }
    let row = |profile: Profile| {
        let replay = report.replay(&profile)?;
        Ok(Row { recorded: profile == recorded, profile, replay })
    };
    profiles.into_iter().map(row).collect()
}

fn tune(file: &str, json: bool) -> Result<(), Failure> {
    let report = read(file)?;
    let rows = grid(&report)?;
    if json {
        let rows: Vec<serde_json::Value> = rows.iter().map(as_json).collect();
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    println!(
        "{} tasks, recorded; `*` is the recorded profile, all others are estimates\n",
        report.tasks.len()
    );
    println!(
        "  {:<44} {:>10} {:>10} {:>10} {:>10}",
        "profile", "last start", "last end", "normal end", "stretch"
    );
    for row in &rows {
        println!(
            "{} {:<44} {:>10} {:>10} {:>10} {:>10}",
            if row.recorded { '*' } else { ' ' },
            cut(&row.profile.to_string()),
            shown(row.replay.last_start),
            shown(row.replay.last_finish),
            shown(row.replay.last_finish_of(Queue::Normal)),
            shown(Some(row.replay.longest_stretch)),
        );
    }
    println!(
        "\nstretch: the longest in which one governed poll follows another, with only a tick between them"
    );
    Ok(())
}

/// A monkey's name may be of any length.
fn cut(profile: &str) -> String {
    profile.chars().map(|c| if c.is_control() { '?' } else { c }).take(44).collect()
}

fn shown(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.1} ms", time.as_secs_f64() * 1e3))
}

fn as_json(row: &Row) -> serde_json::Value {
    let millis = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    serde_json::json!({
        "profile": row.profile.to_string(),
        "recorded": row.recorded,
        "is_estimate": row.replay.is_estimate,
        "last_start_ms": millis(row.replay.last_start),
        "last_finish_ms": millis(row.replay.last_finish),
        "normal_finish_ms": millis(row.replay.last_finish_of(Queue::Normal)),
        "longest_stretch_ms": millis(Some(row.replay.longest_stretch)),
        "gate_opened_ms": millis(row.replay.gate_opened),
    })
}

// --- a recording to begin with -------------------------------------------------------------------------------------

/// Ten tasks that hold the thread and wait: how long each poll takes, how long it then waits, how often.
const TASKS: [(&str, bool, u64, u64, u32); 10] = [
    ("configuration", false, 5, 20, 1),
    ("session", false, 3, 60, 2),
    ("translations", false, 12, 5, 2),
    ("notifications", false, 2, 120, 1),
    ("search index", true, 40, 2, 5),
    ("thumbnails", true, 25, 10, 4),
    ("spelling", true, 15, 30, 3),
    ("suggestions", true, 8, 45, 3),
    ("licence", true, 1, 150, 1),
    ("telemetry", true, 2, 80, 2),
];

fn record(file: &str) -> Result<(), Failure> {
    let report = tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(boot())?;
    fs::write(file, report.to_json()).map_err(|error| format!("{file}: {error}"))?;
    println!("{report}\n\nwritten to {file}");
    Ok(())
}

async fn boot() -> Result<Report, Failure> {
    let governor = Governor::builder()
        .record_segments()
        .quiet(Duration::from_millis(200))
        .name("a synthetic boot")
        .build()?;
    for (name, idle, holds, waits, times) in TASKS {
        let task = Task::new(name, move || async move {
            for _ in 0..times {
                hold(Duration::from_millis(holds));
                sleep(Duration::from_millis(waits)).await;
            }
        });
        governor.govern(if idle { task.idle() } else { task });
    }
    Ok(governor.report().finished().await)
}

/// Stands for work that burns CPU, without the noise.
#[expect(clippy::disallowed_methods, reason = "a poll that holds its thread is what is recorded")]
fn hold(time: Duration) {
    std::thread::sleep(time);
}
