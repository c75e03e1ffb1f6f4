//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::sim::World;

pub(crate) const HELP: &str = "\
How a thousand clients that lost their server come back, under each schedule. Virtual time.

    --outage SECONDS   how long the server is down        (6)
    --clients N        how many clients lose it           (1000)
    --processes N      processes that the gate row has    (1)
    --seeds N          the mean of seeds 0 to N - 1       (20)
    --json             a line of JSON a schedule instead of the table
    --svg FILE         also draws the arrivals after the return
    --rivals           adds other crates' schedules; these are not seeded";

pub(crate) struct Options {
    pub(crate) world: World,
    pub(crate) processes: usize,
    pub(crate) seeds: u64,
    pub(crate) json: bool,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) rivals: bool,
}

/// `Ok(None)` asks for help.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options =
        Options { world: World::of(6), processes: 1, seeds: 20, json: false, svg: None, rivals: false };
    let mut args = args.into_iter();
    while let Some(option) = args.next() {
        let mut number = |most: u64| -> Result<u64, String> {
            let text = args.next().unwrap_or_default();
            let number = text.parse().ok().filter(|number| (1..=most).contains(number));
            number.ok_or_else(|| format!("{option}: {text:?}; allowed: 1 to {most}"))
        };
        match option.as_str() {
            "--outage" => options.world.outage = Duration::from_secs(number(86_400)?),
            "--clients" => options.world.clients = number(1_000_000)? as usize,
            "--processes" => options.processes = number(1_000_000)? as usize,
            "--seeds" => options.seeds = number(100_000)?,
            "--json" => options.json = true,
            "--rivals" => options.rivals = true,
            "--svg" => options.svg = Some(args.next().ok_or("--svg needs a file")?.into()),
            "--help" | "-h" => return Ok(None),
            other => return Err(format!("unknown option {other:?}; --help lists them")),
        }
    }
    if options.processes > options.world.clients {
        return Err("--processes: more than there are clients".to_owned());
    }
    Ok(Some(options))
}
