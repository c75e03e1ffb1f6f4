//! How long do requests wait while a service does its startup work? Measured on a small source code search,
//! for each usual way to start that work and for the governor.
//!
//! ```sh
//! cargo run --release --example boot_latency            # real work over real source, one round
//! cargo run --release --example boot_latency -- --help
//! ```
//!
//! In the order in which a run goes: options, corpus, then for each round, runtime and strategy a service,
//! a client and the side tasks, and at the end the figures.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program's results and progress")]

mod options;

mod compiled;
mod corpus;

mod adapter;
mod app;
mod client;
mod clock;
mod conversation;
mod gate;
mod governed;
mod http;
mod ledger;
mod round;
mod service;
mod strategy;
mod tasks;

mod figures;
mod results;

mod introduction;
mod output;
mod promises;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::corpus::Corpus;
use crate::options::{Command, HELP, Options};
use crate::results::Results;
use crate::round::{Flavor, Scene};
use crate::strategy::{LATER, Strategy};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(Command::Run(options)) => options,
        Ok(Command::Help) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    if cfg!(debug_assertions) {
        eprintln!("note: a debug build; figures that mean something come from `cargo run --release`");
    }
    let scene = scene(options)?;
    tasks::listing::hide_deliberate_panics();
    if let Some(runs) = options.gate {
        println!("{}", gate::check(runs, || scene.boot_alone())?);
        return Ok(());
    }
    let names: Vec<_> = scene.declared().0.iter().map(|task| task.name).collect();
    options.check_victim(&names)?;
    let strategies = Strategy::list(options.all, options.synthetic.is_some());
    if !options.json {
        println!("{}", introduction::text(&scene, &strategies));
    }
    let Results { rows, reports } = results::measure(&scene, &strategies)?;
    let judged = match cfg!(debug_assertions) {
        true => vec!["not judged: a debug build".into()],
        false => promises::judge(&rows, options),
    };
    if options.json {
        for row in &rows {
            println!("{}", output::json(row, options.synthetic, options.rounds));
        }
        for line in judged {
            eprintln!("{line}");
        }
    } else {
        for flavor in Flavor::BOTH {
            println!("\n{}", output::table(&rows, flavor).trim_end());
        }
        println!("\n{}", judged.join("\n"));
        for (flavor, report) in reports {
            println!("\nthe governed run on {flavor}:\n{}", report.to_string().trim_end());
        }
    }
    Ok(())
}

fn scene(options: &Options) -> Result<Scene<'_>, Failure> {
    let (corpus, window) = match options.synthetic {
        Some(_) => (Corpus::of_this_example(), Duration::from_millis(1500)),
        None => {
            let corpus = Corpus::of_compiled_crates()
                .map_err(|error| format!("{error}; `--synthetic` needs no corpus"))?;
            (corpus, Duration::from_millis(3000))
        }
    };
    // A strategy that only begins after a while must not look good because nobody looked any more.
    let window = if options.all { window + LATER } else { window };
    Ok(Scene { options, corpus: Arc::new(corpus), window })
}
