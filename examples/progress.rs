//! A boot that one can watch: bars from the event stream.
//!
//! One bar for all tasks, a line for each that runs, and what holds the gate. Where standard output is no terminal, plain
//! lines: one an event.
//!
//! `cargo run --example progress`, and `cargo run --example progress | cat`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::IsTerminal;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use afterboot::{Event, Events, GateState, Governor, Outcome, Task, TaskHandle, WaitReason, yield_if_due};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::{MissedTickBehavior, interval, sleep};

/// How often lines move although nothing happens.
const FRAME: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let governor = Governor::builder()
        .name("progress")
        .overrides_from_env("AFTERBOOT")
        .await_ready()
        .quiet(Duration::from_millis(800))
        .max_in_flight(0)
        .build()?;

    // Listens before the first declaration, so that nothing is missed.
    let events = governor.events();
    let watching = match std::io::stdout().is_terminal() {
        true => tokio::spawn(watch(Bars::new()?, governor.clone(), events)),
        false => tokio::spawn(watch(Lines::default(), governor.clone(), events)),
    };
    declare(&governor);
    let run = governor.report();

    // The application's own boot, then its first request: both keep the gate shut.
    sleep(Duration::from_millis(600)).await;
    governor.ready();
    let request = governor.in_flight("GET /");
    sleep(Duration::from_millis(900)).await;
    drop(request);

    let report = run.finished().await;
    governor.shutdown(Duration::ZERO).await; // nothing is left to stop; the stream of events ends
    watching.await?;
    println!("\n{report}");
    Ok(())
}

fn declare(governor: &Governor) {
    let wait = |name, millis| Task::value(name, move || sleep(Duration::from_millis(millis)));
    let settings: TaskHandle<()> = governor.govern(wait("settings", 400));
    governor.govern(wait("plugins", 1100).after(&settings));
    governor.govern(wait("session", 700));
    let synonyms = || async { Err::<(), _>("no such file") };
    let synonyms = governor.govern(Task::new("synonyms", synonyms));
    governor.govern(wait("spelling", 300).after(&synonyms)); // skipped
    governor.govern(wait("telemetry", 300).when(false)); // skipped
    governor.govern(wait("notifications", 1300));
    governor.govern(Task::value("search index", index).idle());
    governor.govern(wait("thumbnails", 1200).idle());
    governor.govern(wait("old logs", 500).idle());
    governor.govern(wait("update check", 900).idle());
}

/// Burns CPU, and gives its tick back every few milliseconds.
async fn index() -> u64 {
    let mut hash = 0_u64;
    for _ in 0..300 {
        for number in 0..20_000_u64 {
            hash = hash.rotate_left(5) ^ std::hint::black_box(number);
        }
        yield_if_due().await;
    }
    hash
}

// --- from the stream to a view -------------------------------------------------------------------------------------

trait View {
    fn event(&mut self, at: Duration, event: &Event);
    /// How the gate stands now; told often.
    fn gate(&mut self, gate: &GateState);
    fn close(self);
}

/// Shows until the stream ends. The gate is looked at between events, because why it is shut changes without one.
async fn watch(mut view: impl View, governor: Governor, mut events: Events) {
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            next = events.next() => match next {
                Some((at, event)) => view.event(at, &event),
                None => break,
            },
            _ = frames.tick() => view.gate(&governor.gate()),
        }
    }
    view.gate(&governor.gate());
    view.close();
}

/// One line an event; none for what a watcher does not need. Names and errors may come from outside: they stay on the
/// line.
fn words(event: &Event) -> Option<String> {
    Some(match event {
        Event::Started { task, .. } => format!("{task:?} started"),
        Event::Delayed { task, .. } => format!("{task:?} is delayed by the monkey"),
        Event::Ended { task, outcome, .. } => {
            format!("{task:?} {}", outcome.to_string().replace(char::is_control, " "))
        }
        Event::Stuck { task, .. } => format!("{task:?} does not come back; the others go on without it"),
        Event::Starved { task, behind, .. } => format!("{task:?} waits for a slot behind {behind:?}"),
        Event::Slow { task, .. } => format!("{task:?} has been running for 30 s"),
        Event::GateOpened { gate, .. } => format!("gate {gate}"),
        Event::LongTask { length, who, .. } => {
            format!("worker blocked for {} ms by {who:?}", length.as_millis())
        }
        Event::Lagged { missed, .. } => format!("{missed} events were missed"),
        _ => return None,
    })
}

// --- plain lines ---------------------------------------------------------------------------------------------------

#[derive(Default)]
struct Lines {
    shown: Option<Discriminant<WaitReason>>,
}

impl View for Lines {
    fn event(&mut self, at: Duration, event: &Event) {
        if let Some(text) = words(event) {
            println!("{:>7.3} s  {text}", at.as_secs_f64());
        }
    }

    /// Only another reason is news; that it opened is an event.
    fn gate(&mut self, gate: &GateState) {
        if let GateState::Shut { why, .. } = gate
            && self.shown.replace(discriminant(why)) != Some(discriminant(why))
        {
            println!("{:>9}  gate {gate}", "");
        }
    }

    fn close(self) {}
}

// --- bars ----------------------------------------------------------------------------------------------------------

struct Bars {
    screen: MultiProgress,
    all: ProgressBar,
    gate: ProgressBar,
    /// By the task's number: names may come twice.
    running: BTreeMap<u64, ProgressBar>,
    line: ProgressStyle,
}

impl Bars {
    fn new() -> Result<Bars, Box<dyn Error>> {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let all = screen.add(ProgressBar::new(0));
        all.set_style(ProgressStyle::with_template("[{bar:32}] {pos} of {len} tasks  {elapsed}")?);
        let gate = screen.add(ProgressBar::new_spinner());
        gate.set_style(ProgressStyle::with_template("gate {msg}")?);
        let line = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")?;
        Ok(Bars { screen, all, gate, running: BTreeMap::new(), line })
    }

    /// Above the bars, and there to stay.
    fn say(&self, event: &Event) {
        if let Some(text) = words(event) {
            // A terminal that went away is not worth the boot.
            let _ = self.screen.println(text);
        }
    }
}

impl View for Bars {
    fn event(&mut self, _: Duration, event: &Event) {
        match event {
            Event::Declared { .. } => self.all.inc_length(1),
            Event::Started { task, number, .. } => {
                let line = self.screen.add(ProgressBar::new_spinner());
                line.set_style(self.line.clone());
                line.set_message(format!("{task:?}"));
                self.running.insert(*number, line);
            }
            Event::Ended { number, outcome, .. } => {
                self.all.inc(1);
                if let Some(line) = self.running.remove(number) {
                    line.finish_and_clear();
                    self.screen.remove(&line);
                }
                if *outcome != Outcome::Completed {
                    self.say(event);
                }
            }
            Event::GateOpened { gate, .. } => self.gate(gate),
            _ => self.say(event),
        }
    }

    fn gate(&mut self, gate: &GateState) {
        self.gate.set_message(gate.to_string());
        self.running.values().for_each(ProgressBar::tick);
    }

    fn close(self) {
        self.gate.finish();
        self.all.finish();
    }
}
