//! Does the client lose count, whatever its server does? A server in one process with the client misbehaves in one of ten
//! ways and keeps a ledger of its own, which is held against the client's.
//!
//! ```sh
//! cargo run --release -p afterboot-beacon --example torture -- --mode flap
//! cargo run --release -p afterboot-beacon --example torture -- --help
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program's results")]

#[path = "../../tests/support/server.rs"]
#[expect(dead_code, reason = "shared with the tests, which ask it more")]
mod collector;
#[path = "../../benches/floor/mod.rs"]
mod floor;

mod options;
mod scene;

mod memory;
mod run;
mod shutdown;

mod figures;

use std::process::ExitCode;

use crate::figures::{Figures, Places};
use crate::floor::{DATA, Floor, Times};
use crate::options::{Command, HELP};
use crate::scene::{Room, Scene, Torture};

const FLOOR_ROUNDS: usize = 5;

fn main() -> ExitCode {
    let command = match options::parse(std::env::args().skip(1)) {
        Ok(command) => command,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    if cfg!(debug_assertions) {
        eprintln!("note: a debug build; times that mean something come from `cargo run --release`");
    }
    let kept = match command {
        Command::Help => {
            print!("{HELP}");
            Ok(true)
        }
        Command::Torture { torture, events, spool, json } => torment(torture, events, spool, json),
        Command::Shutdown { rounds, json } => shut_down(rounds, json),
    };
    match kept {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn torment(torture: Torture, events: u64, spool: bool, json: bool) -> Result<bool, String> {
    let (floor_p50_ns, floor_bytes) = floor(events);
    let bytes_per_event = memory::bytes_per_event(events)?;
    let scene = Scene { torture, events, spool, room: Room::Enough };
    let mut enough = run::run(&scene);
    let default = run::run(&Scene { room: Room::Default, ..scene });
    let times = Times::of(&mut enough.times);
    let figures = Figures {
        mode: torture.name(),
        places: Places::of(&enough),
        p50_ns: times.p50,
        p99_ns: times.p99,
        floor_p50_ns,
        floor_bytes,
        bytes_per_event: (bytes_per_event * 10.0).round() / 10.0,
        shutdown_ms: enough.shutdown.as_millis() as f64,
        max_rss_mb: memory::max_rss_mb().round(),
        default_limits: Places::of(&default),
    };
    let mut faults = enough.faults;
    faults.extend(default.faults.into_iter().map(|fault| format!("with the default limits {fault}")));
    if json {
        println!("{}", serde_json::to_string(&figures).map_err(|error| error.to_string())?);
        if !faults.is_empty() {
            eprintln!("{}", figures::verdict(&faults));
        }
    } else {
        println!("{}\n{}", figures.table(), figures::verdict(&faults));
    }
    Ok(faults.is_empty())
}

fn floor(events: u64) -> (f64, f64) {
    let mut bytes = 0.0;
    let rounds = [(); FLOOR_ROUNDS].map(|()| {
        let floor = Floor::default();
        let mut times: Vec<u64> = (0..events).map(|seq| floor.post(seq, &DATA).as_nanos() as u64).collect();
        assert_eq!(floor.events(), events);
        bytes = floor.bytes_per_event();
        Times::of(&mut times)
    });
    (Times::median(&rounds).p50, bytes)
}

fn shut_down(rounds: usize, json: bool) -> Result<bool, String> {
    let late = shutdown::measure(rounds)?;
    let (median, worst, kept) = (late.median_ms(), late.worst_ms(), late.keeps_the_promise());
    if json {
        println!(
            "{{\"shutdown_rounds\":{rounds},\"late_ms_median\":{median:.1},\"late_ms_worst\":{worst:.1},\"kept\":{kept}}}"
        );
    } else {
        println!(
            "{rounds} shutdowns while the server hangs: {median:.1} ms late at the median, {worst:.1} ms at worst"
        );
        let promise = "at most 100 ms late at the median, and 1 s in 19 of 20";
        println!("{promise}: {}", if kept { "kept" } else { "MISSED" });
    }
    Ok(kept)
}
