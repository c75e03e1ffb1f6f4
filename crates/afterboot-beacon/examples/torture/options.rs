//! The command line: raw arguments in, validated options out. A refusal names the option, the value and what is allowed.

use crate::scene::Torture;

pub(crate) const HELP: &str = "\
torture: does the client lose count, whatever its server does?

usage: cargo run --release -p afterboot-beacon --example torture -- --mode MODE [options]

  --mode MODE            ok, 503, 429, 413 (bodies over 8 KiB are refused), partial (some events are rejected, some asked
                         for again), hung, refuse (the port is closed), flap (all of it by turns), slow or captive
  --events N             100 to 10000000 events (default 100000)
  --spool                with a spool in a temporary folder: what cannot be sent is saved instead of dropped, and has to
                         arrive when the next beacon opens the spool and the server is well; the figures are from before
  --json                 one JSON object and nothing else on stdout
  --shutdown-rounds N    instead of a mode: how much longer than its deadline a shutdown takes while the server hangs, 1 to
                         1000 times
  --help                 this text

A run posts the events twice: with room for all of them, which the figures are of, and with the default limits, which are
smaller (default_limits in the JSON). dropped is the sum over all reasons. max_rss_mb is of the whole process, the server
included, and 0 where the system does not say. Exit code 1: the ledger does not balance, or disagrees with the server's.
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Torture { torture: Torture, events: u64, spool: bool, json: bool },
    Shutdown { rounds: usize, json: bool },
    Help,
}

pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut args = args.into_iter();
    let (mut torture, mut events, mut spool, mut json, mut rounds) = (None, None, false, false, None);
    while let Some(option) = args.next() {
        let mut value = |allowed: &str| {
            let value = args.next();
            value.ok_or_else(|| format!("{option} has no value: {allowed} are allowed"))
        };
        match option.as_str() {
            "--mode" => torture = Some(mode(&value(&modes())?)?),
            "--events" => events = Some(number(&option, &value("100 to 10000000")?, 100, 10_000_000)?),
            "--shutdown-rounds" => rounds = Some(number(&option, &value("1 to 1000")?, 1, 1000)?),
            "--spool" => spool = true,
            "--json" => json = true,
            "--help" | "-h" => return Ok(Command::Help),
            _ => {
                return Err(format!(
                    "{option} is no option: --mode, --events, --spool, --json, --shutdown-rounds and --help are allowed"
                ));
            }
        }
    }
    match (torture, rounds) {
        (None, Some(_)) if spool || events.is_some() => {
            Err("--shutdown-rounds goes with --json only: its events and its server are its own".to_owned())
        }
        (None, Some(rounds)) => Ok(Command::Shutdown { rounds: rounds as usize, json }),
        (Some(_), Some(_)) => {
            Err("--mode and --shutdown-rounds are two programs: one of them is allowed".to_owned())
        }
        (None, None) => Err(format!("--mode is missing: {} are allowed", modes())),
        (Some(torture), None) => {
            Ok(Command::Torture { torture, events: events.unwrap_or(100_000), spool, json })
        }
    }
}

fn modes() -> String {
    Torture::ALL.map(Torture::name).join(", ")
}

fn mode(name: &str) -> Result<Torture, String> {
    let mode = Torture::ALL.into_iter().find(|mode| mode.name() == name);
    mode.ok_or_else(|| format!("--mode is {name:?}: {} are allowed", modes()))
}

fn number(option: &str, value: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("{option} is {value:?}: {least} to {most} are allowed"))
}
