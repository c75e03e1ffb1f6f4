//! The command line, of the program and of its children.

use std::error::Error;
use std::str::FromStr;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
afterboot-bench [--events 100000] [--runs 3] [--rate EVENTS_A_SECOND] [--client NAME] [--mode ok|hung] [--json]
afterboot-bench --saving [--json]";

/// What the sink does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Answers what the client takes for a success.
    Ok,
    /// Reads requests and never answers.
    Hung,
}

/// What this process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// The table of clients.
    Compare,
    /// The table of what batching saves.
    Saving,
    /// A child: one client, timed.
    Measure,
    /// A child: one client's heap while its events are queued.
    Heap,
    /// A child: the beacon, paced.
    Save,
}

#[derive(Debug, Clone)]
pub(crate) struct Args {
    pub(crate) task: Task,
    pub(crate) events: u32,
    pub(crate) runs: u32,
    /// Events a second; none: as fast as the client takes them.
    pub(crate) rate: Option<u32>,
    pub(crate) client: Option<String>,
    pub(crate) mode: Mode,
    pub(crate) json: bool,
    /// For children: where the sink is.
    pub(crate) url: String,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        match text {
            "ok" => Ok(Mode::Ok),
            "hung" => Ok(Mode::Hung),
            _ => Err(format!("mode is {text:?}: ok and hung are allowed")),
        }
    }
}

impl Mode {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Mode::Ok => "ok",
            Mode::Hung => "hung",
        }
    }
}

impl Args {
    pub(crate) fn read(mut given: impl Iterator<Item = String>) -> Outcome<Args> {
        let mut args = Args {
            task: Task::Compare,
            events: 100_000,
            runs: 3,
            rate: None,
            client: None,
            mode: Mode::Ok,
            json: false,
            url: String::new(),
        };
        while let Some(name) = given.next() {
            let mut value = || given.next().ok_or_else(|| format!("{name} needs a value\n{USAGE}"));
            match name.as_str() {
                "--events" => args.events = value()?.parse()?,
                "--runs" => args.runs = value()?.parse::<u32>()?.max(1),
                "--rate" => args.rate = Some(value()?.parse::<u32>()?.max(1)),
                "--client" => args.client = Some(value()?),
                "--mode" => args.mode = value()?.parse()?,
                "--json" => args.json = true,
                "--saving" => args.task = Task::Saving,
                "--measure" => args.task = Task::Measure,
                "--heap" => args.task = Task::Heap,
                "--save" => args.task = Task::Save,
                "--url" => args.url = value()?,
                _ => return Err(format!("{name} is not known\n{USAGE}").into()),
            }
        }
        Ok(args)
    }

    /// The client that a child is about.
    pub(crate) fn one_client(&self) -> Outcome<&str> {
        self.client.as_deref().ok_or_else(|| "a child needs --client".into())
    }
}
