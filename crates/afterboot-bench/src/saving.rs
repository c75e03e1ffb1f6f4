//! What batching saves: the beacon against itself with one request an event, over the same transport.

use std::time::Duration;

use afterboot_beacon::Flushed;
use serde::Serialize;

use crate::args::{Args, Mode, Outcome};
use crate::child::{Phase, Saved, paced, say};
use crate::clients::beacon;
use crate::event::{Checkout, ROUTE};
use crate::measure;
use crate::parent::Running;
use crate::sink::{Arrived, Dialect, Sink};
use crate::table;

const EVENTS: u32 = 1_000;
const SECONDS: u32 = 20;
/// Beyond the time that the pace takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) pace: &'static str,
    pub(crate) sends: &'static str,
    pub(crate) saved: Saved,
    pub(crate) arrived: Arrived,
}

pub(crate) fn table(args: &Args) -> Outcome {
    let steady = (EVENTS / SECONDS).to_string();
    let mut cases = Vec::new();
    for (pace, rate) in [("1,000 events over 20 s", Some(steady.as_str())), ("1,000 events at once", None)] {
        for (sends, client) in [("in batches (defaults)", "batched"), ("one request an event", "single")] {
            let sink = Sink::start(Dialect::Beacon, Mode::Ok)?;
            let mut arguments = vec!["--save", "--client", client, "--url", sink.url()];
            if let Some(rate) = rate {
                arguments.extend(["--rate", rate]);
            }
            let running = Running::start(&arguments)?;
            let said = running.next(PATIENCE + Duration::from_secs(SECONDS.into()));
            let Some(Phase::Saved(saved)) = said else {
                return Err(format!("{pace}, {sends}: {said:?}").into());
            };
            let case = Case { pace, sends, saved, arrived: sink.arrived() };
            if args.json {
                println!("{}", serde_json::to_string(&case)?);
            }
            cases.push(case);
        }
    }
    if !args.json {
        print!("{}", table::of_saving(&cases));
    }
    Ok(())
}

pub(crate) fn child(args: &Args) -> Outcome {
    let builder = beacon::builder(&args.url);
    let builder = if args.one_client()? == "single" { builder.batch_events(1) } else { builder };
    let beacon = builder.build()?;
    // Until the beacon's thread is there and waits.
    measure::pause(Duration::from_millis(300));
    let (cpu, wakeups, begin) = (measure::cpu(), measure::wakeups_of_other_threads(), measure::now());
    paced(EVENTS, args.rate, |n| drop(beacon.post(ROUTE, &Checkout::new(n))));
    let Flushed { complete, counters, .. } = beacon.flush_blocking(PATIENCE);
    if !complete || counters.acked != u64::from(EVENTS) {
        return Err(format!("not every event arrived: {counters:?}").into());
    }
    // Before the beacon's thread ends, and its count with it.
    let saved = Saved {
        wakeups: measure::wakeups_of_other_threads() - wakeups,
        cpu_seconds: (measure::cpu() - cpu).as_secs_f64(),
        seconds: begin.elapsed().as_secs_f64(),
    };
    // One more request: it declares the end of the stream.
    beacon.shutdown_blocking(PATIENCE);
    say(&Phase::Saved(saved))
}
