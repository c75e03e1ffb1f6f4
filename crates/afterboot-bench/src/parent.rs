//! Runs each client in a process of its own, against a sink in this one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde::Serialize;

use crate::args::{Args, Mode, Outcome};
use crate::child::{Enqueued, Finished, Heap, Phase};
use crate::clients::{self, Row, floor};
use crate::sink::{Arrived, Sink};
use crate::table;

/// How long a client may take to flush and to shut down.
pub(crate) const BOUND: Duration = Duration::from_secs(60);
/// How long it may take to be called for every event, beyond what the rate makes of it.
const ENQUEUE_BOUND: Duration = Duration::from_secs(120);

/// A line of the table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measured {
    pub(crate) client: &'static str,
    pub(crate) settings: &'static str,
    pub(crate) mode: &'static str,
    /// False for the floor.
    pub(crate) sends: bool,
    pub(crate) posted: u32,
    /// None: it was not called for every event within the bound.
    pub(crate) enqueued: Option<Enqueued>,
    /// None: it did not return within the bound.
    pub(crate) finished: Option<Finished>,
    pub(crate) heap: Option<Heap>,
    pub(crate) arrived: Arrived,
}

/// A child process, and what it has said. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    phases: Receiver<Phase>,
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Outcome<Running> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let (told, phases) = mpsc::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    // A client that prints is not what is asked about.
                    if let Ok(phase) = serde_json::from_str(&line)
                        && told.send(phase).is_err()
                    {
                        return;
                    }
                }
            });
        }
        Ok(Running { child, phases })
    }

    /// The next thing that the child says. None: nothing in time, or it has ended.
    pub(crate) fn next(&self, within: Duration) -> Option<Phase> {
        self.phases.recv_timeout(within).ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn compare(args: &Args) -> Outcome {
    let rows = clients::rows();
    let chosen: Vec<Row> = rows
        .iter()
        .copied()
        .filter(|row| args.client.as_deref().is_none_or(|name| name == row.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        return Err(format!("client is {:?}: {} are in this build", args.client, names.join(", ")).into());
    }
    let mut measured = Vec::new();
    for row in chosen {
        let mut runs = Vec::new();
        // A hung run takes up to the bound, and what it is about does not scatter.
        for _ in 0..if args.mode == Mode::Hung { 1 } else { args.runs } {
            runs.push(run(row, args)?);
        }
        let rate = |run: &Measured| run.enqueued.as_ref().map_or(0.0, |enqueued| enqueued.per_second);
        runs.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        let mut median = runs.swap_remove(runs.len() / 2);
        median.heap = heap(row)?;
        if args.json {
            println!("{}", serde_json::to_string(&median)?);
        }
        measured.push(median);
    }
    if !args.json {
        print!("{}", table::of_clients(&measured, args));
    }
    Ok(())
}

fn run(row: Row, args: &Args) -> Outcome<Measured> {
    let sink = Sink::start(row.dialect, args.mode)?;
    let events = args.events.to_string();
    let rate = args.rate.map(|rate| rate.to_string());
    let mut arguments = vec!["--measure", "--client", row.name, "--url", sink.url()];
    arguments.extend(["--events", &events, "--mode", args.mode.as_str()]);
    if let Some(rate) = &rate {
        arguments.extend(["--rate", rate]);
    }
    let running = Running::start(&arguments)?;
    let pace = args.rate.map_or(0.0, |rate| f64::from(args.events) / f64::from(rate));
    let enqueued = match running.next(ENQUEUE_BOUND + Duration::from_secs_f64(pace)) {
        Some(Phase::Enqueued(enqueued)) => Some(enqueued),
        _ => None,
    };
    let finished = match enqueued.as_ref().and_then(|_| running.next(BOUND)) {
        Some(Phase::Finished(finished)) => Some(finished),
        _ => None,
    };
    drop(running);
    Ok(Measured {
        client: row.name,
        settings: row.settings,
        mode: args.mode.as_str(),
        sends: row.name != floor::NAME,
        posted: args.events,
        enqueued,
        finished,
        heap: None,
        arrived: sink.arrived(),
    })
}

fn heap(row: Row) -> Outcome<Option<Heap>> {
    let sink = Sink::start(row.dialect, Mode::Hung)?;
    let running = Running::start(&["--heap", "--client", row.name, "--url", sink.url()])?;
    match running.next(BOUND) {
        Some(Phase::Heap(heap)) => Ok(Some(heap)),
        _ => Ok(None),
    }
}
