//! The command line: raw arguments in, validated options out. A refusal names the option, the value and
//! what is allowed.

use std::fmt;
use std::time::Duration;

use afterboot::{Monkey, Profile};

use crate::tasks::Block;

pub(crate) const HELP: &str = "\
boot_latency: how long requests wait while a service does its startup work, by the way that work is started

usage: cargo run --release --example boot_latency -- [options]

  --synthetic       ten tasks that hold a worker 60 ms each instead of the real boot of a source code
                    search; with the row governed_idle: four of the ten idle behind 600 ms of quiet
  --block MODE      how a synthetic task holds its worker: sleep (default; measures the strategy, not the
                    machine's spare cores) or burn
  --rounds N        1 to 99 rounds, medians of them (default 1); requests are counted over all rounds
  --gate N          1 to 99 governed boots on multi_thread without requests: fails where one of them shows a long task
                    or a hold, or where its gate opens over 20 ms after the quiet window
  --all             also spawn_later: spawn all after a fixed 3 s
  --json            one JSON object a line, one line a strategy and runtime, nothing else on stdout
  --profile SPEC    the governor's profile, such as concurrency=1,pulse=20ms,delay=0
                    (default: concurrency 3, delay 1 ms, pulse 1 ms)
  --monkey TASK     the governor delays one task on purpose by 2 s: a task's name, #0 (the first declared)
                    or random
  --help            this text

The JSON keys boot_ms and idle_start_ms count from when the listener is up, to the last end of a normal
task and to the first start of an idle one; tasks are those whose body ran; requests are those behind
p50_ms, p99_ms and max_ms. null: there was nothing to measure.
";

/// Long enough to be seen in the report, short enough for a demonstration.
const MONKEY_DELAY: Duration = Duration::from_secs(2);
const MOST_ROUNDS: usize = 99;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Random,
    Index(usize),
    Task(String),
}

impl Victim {
    pub(crate) fn monkey(&self) -> Monkey {
        match self {
            Self::Random => Monkey::random(MONKEY_DELAY),
            Self::Index(index) => Monkey::index(*index, MONKEY_DELAY),
            Self::Task(name) => Monkey::task(name.clone(), MONKEY_DELAY),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How the synthetic tasks hold their worker; `None`: the real boot.
    pub(crate) synthetic: Option<Block>,
    pub(crate) rounds: usize,
    /// So many boots without requests, judged by what their gates say; nothing else is measured.
    pub(crate) gate: Option<usize>,
    pub(crate) all: bool,
    pub(crate) json: bool,
    pub(crate) profile: Profile,
    pub(crate) victim: Option<Victim>,
    /// A profile or a monkey was given: the figures are no longer those of the defaults.
    pub(crate) tuned: bool,
}

#[derive(Debug)]
pub(crate) enum Command {
    Run(Options),
    Help,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OptionError {
    option: String,
    value: Option<String>,
    allowed: String,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { option, value, allowed } = self;
        match value {
            Some(value) => write!(f, "{option}: '{value}' is not allowed: {allowed}"),
            None => write!(f, "{option}: {allowed}"),
        }
    }
}

impl std::error::Error for OptionError {}

fn refused(option: &str, value: Option<&str>, allowed: impl Into<String>) -> OptionError {
    OptionError { option: option.to_owned(), value: value.map(str::to_owned), allowed: allowed.into() }
}

/// Takes the arguments without the program's name, values as `--option value` or `--option=value`.
pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Command, OptionError> {
    let (mut synthetic, mut block) = (false, None);
    let mut options = Options {
        synthetic: None,
        rounds: 1,
        gate: None,
        all: false,
        json: false,
        profile: Profile::default(),
        victim: None,
        tuned: false,
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let (option, attached) = match argument.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        match option {
            "--help" | "-h" => return Ok(Command::Help),
            "--synthetic" | "--all" | "--json" if attached.is_some() => {
                return Err(refused(option, attached.as_deref(), "it takes no value"));
            }
            "--synthetic" => synthetic = true,
            "--all" => options.all = true,
            "--json" => options.json = true,
            "--block" | "--rounds" | "--gate" | "--profile" | "--monkey" => {
                let value = attached.or_else(|| arguments.next().filter(|next| !next.starts_with("--")));
                options.tuned |= matches!(option, "--profile" | "--monkey");
                let value = value.ok_or_else(|| refused(option, None, "it needs a value; see --help"))?;
                match option {
                    "--block" => block = Some(block_mode(&value)?),
                    "--rounds" => options.rounds = rounds(option, &value)?,
                    "--gate" => options.gate = Some(rounds(option, &value)?),
                    "--profile" => options.profile = profile(&value)?,
                    _ => options.victim = Some(victim(&value)?),
                }
            }
            _ => {
                let known =
                    "--synthetic, --block, --rounds, --gate, --all, --json, --profile, --monkey, --help";
                return Err(refused(option, None, format!("no such option; there are {known}")));
            }
        }
    }
    if block.is_some() && !synthetic {
        return Err(refused("--block", None, "it needs --synthetic: the real boot does real work"));
    }
    options.synthetic = synthetic.then(|| block.unwrap_or(Block::Sleep));
    Ok(Command::Run(options))
}

fn block_mode(value: &str) -> Result<Block, OptionError> {
    match value {
        "sleep" => Ok(Block::Sleep),
        "burn" => Ok(Block::Burn),
        _ => Err(refused("--block", Some(value), "sleep or burn")),
    }
}

fn rounds(option: &str, value: &str) -> Result<usize, OptionError> {
    let rounds = value.parse().ok().filter(|rounds| (1..=MOST_ROUNDS).contains(rounds));
    rounds.ok_or_else(|| refused(option, Some(value), format!("a number from 1 to {MOST_ROUNDS}")))
}

fn profile(value: &str) -> Result<Profile, OptionError> {
    value.parse().map_err(|error| refused("--profile", Some(value), format!("{error}")))
}

fn victim(value: &str) -> Result<Victim, OptionError> {
    let allowed = "a task's name, #0, #1 … or random";
    match value.strip_prefix('#') {
        _ if value.is_empty() => Err(refused("--monkey", Some(value), allowed)),
        _ if value == "random" => Ok(Victim::Random),
        Some(index) => match index.parse() {
            Ok(index) => Ok(Victim::Index(index)),
            Err(_) => Err(refused("--monkey", Some(value), allowed)),
        },
        None => Ok(Victim::Task(value.to_owned())),
    }
}

impl Options {
    /// The tasks are known only when they have been listed; a victim that is not among them is refused
    /// then.
    pub(crate) fn check_victim(&self, tasks: &[&'static str]) -> Result<(), OptionError> {
        let (value, found) = match &self.victim {
            None | Some(Victim::Random) => return Ok(()),
            Some(Victim::Index(index)) => (format!("#{index}"), *index < tasks.len()),
            Some(Victim::Task(name)) => (name.clone(), tasks.contains(&name.as_str())),
        };
        let allowed = format!("{}; #0 to #{}; random", tasks.join(", "), tasks.len() - 1);
        if found { Ok(()) } else { Err(refused("--monkey", Some(&value), allowed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, OptionError> {
        match parse(line.split_whitespace().map(str::to_owned))? {
            Command::Run(options) => Ok(options),
            Command::Help => panic!("help was not asked for in '{line}'"),
        }
    }

    #[test]
    fn no_argument_is_one_round_of_the_real_boot() {
        let options = options("").expect("valid");
        assert_eq!((options.synthetic, options.rounds, options.json, options.all), (None, 1, false, false));
    }

    #[test]
    fn values_may_be_attached_or_follow() {
        let both = options("--synthetic --block=burn --rounds 9 --json --monkey #0").expect("valid");
        assert_eq!((both.synthetic, both.rounds, both.json), (Some(Block::Burn), 9, true));
        assert_eq!(both.victim, Some(Victim::Index(0)));
    }

    #[test]
    fn a_refusal_names_option_value_and_what_is_allowed() {
        for (line, option, value, allowed) in [
            ("--synthetic --block spin", "--block", "spin", "sleep or burn"),
            ("--rounds 0", "--rounds", "0", "from 1 to 99"),
            ("--rounds many", "--rounds", "many", "from 1 to 99"),
            ("--gate 100", "--gate", "100", "from 1 to 99"),
            ("--profile concurrency=0", "--profile", "concurrency=0", ""),
            ("--monkey #x", "--monkey", "#x", "#0"),
            ("--json=yes", "--json", "yes", "no value"),
        ] {
            let text = options(line).expect_err(line).to_string();
            for part in [option, value, allowed] {
                assert!(text.contains(part), "{line}: '{text}' does not say '{part}'");
            }
        }
    }

    #[test]
    fn unknown_options_and_missing_values_are_refused() {
        assert!(options("--fast").expect_err("unknown").to_string().contains("--synthetic"));
        assert!(options("--rounds --json").expect_err("no value").to_string().contains("needs a value"));
        assert!(options("--block burn").expect_err("no tasks to block").to_string().contains("--synthetic"));
    }

    #[test]
    fn a_victim_must_be_among_the_tasks() {
        let chosen = |line| options(line).expect("valid").check_victim(&["a", "b"]);
        assert_eq!(chosen("--monkey a"), Ok(()));
        assert_eq!(chosen("--monkey #1"), Ok(()));
        assert!(chosen("--monkey c").expect_err("no such task").to_string().contains("a, b"));
        assert!(chosen("--monkey #2").is_err());
    }
}
