//! The laws of the core, held under random events: cited by their numbers in `DESIGN.md`.
//!
//! `World` drives the core as lane, handles, probe and watchdog do, keeps a plain account of what must be true
//! beside it, and compares the two after every event.

mod named;
mod world;

use std::time::Duration;

use proptest::prelude::*;

use self::world::World;
use crate::model::gate_rules::GateRules;
use crate::model::monkey::Monkey;
use crate::model::outcome::{Outcome, SkipReason};
use crate::model::profile::Profile;
use crate::model::queue::Queue;

/// One thing that happens to the core. Numbers of tasks are taken modulo how many there are, those from 16 on
/// among the tasks that have not ended; what cannot happen now does nothing.
#[derive(Debug, Clone)]
enum Event {
    Declare(Declaration),
    /// So many tasks are declared, all wrongly, that older records have to be forgotten.
    Flood,
    /// The lane lets time pass and asks what there is to do.
    Look,
    /// The tick is over: the lane polls what it picks; the poll lasts until `PollEnds`.
    Pick,
    /// A look and a pick with nothing between them.
    Turn,
    PollEnds(Verdict),
    /// The watchdog looks whether the poll has lasted for `STUCK_AFTER`.
    GiveUpStuck,
    /// One of the polls that were given up returns.
    StuckReturns(usize, Verdict),
    Wake(usize),
    Demand(usize),
    Cancel(usize),
    /// The task that is polled, or one that is stuck, waits for another one's handle.
    WaitBegins {
        stuck: bool,
        target: usize,
    },
    /// A task drops the future with which it waited.
    WaitEnds(usize),
    Ready,
    OpenGate,
    Interactive {
        failed: bool,
    },
    RequestEnters(usize),
    RequestLeaves(usize),
    /// The probe saw a stall of so many milliseconds that ended now.
    Stall(u64),
    /// The application tells of a long task of so many milliseconds.
    LongTask(u64),
    Beat,
    Wait(u64),
    Seal,
    /// The task that is polled awaits `finished()`.
    AwaitEnd,
    AwaitEndNoMore(usize),
    Close {
        lost: bool,
    },
    CancelPiece,
    EndRunning,
}

#[derive(Debug, Clone)]
struct Declaration {
    queue: Queue,
    condition: bool,
    /// Predecessors, and whether it is enough that they end.
    after: Vec<(usize, bool)>,
    timeout: Option<u64>,
    no_later_than: Option<u64>,
    blocking: bool,
    never_delay: bool,
    /// By the task that is polled, if one is.
    inside: bool,
    invalid: bool,
}

#[derive(Debug, Clone, Copy)]
enum Verdict {
    Pending,
    Completed,
    Failed,
    Panicked,
    /// Its condition, asked in its tick, was false.
    Skipped,
}

impl Verdict {
    fn outcome(self) -> Option<Outcome> {
        match self {
            Verdict::Pending => None,
            Verdict::Completed => Some(Outcome::Completed),
            Verdict::Failed => Some(Outcome::Failed("no".into())),
            Verdict::Panicked => Some(Outcome::Panicked("boom".into())),
            Verdict::Skipped => Some(Outcome::Skipped(SkipReason::Condition)),
        }
    }

    fn of_a_later_poll(self) -> Verdict {
        if matches!(self, Verdict::Skipped) { Verdict::Failed } else { self }
    }
}

#[derive(Debug, Clone)]
struct Settings {
    profile: Profile,
    gate: GateRules,
    seed: u64,
}

/// How long a poll may hold the lane here.
const STUCK_AFTER: Duration = Duration::from_millis(10);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn settings() -> impl Strategy<Value = Settings> {
    let monkey = prop_oneof![
        3 => Just(None),
        1 => (0..50_u64).prop_map(|delay| Some(Monkey::random(millis(delay)))),
        1 => (0..4_usize, 0..50_u64).prop_map(|(n, delay)| Some(Monkey::index(n, millis(delay)))),
    ];
    let pulse = prop_oneof![Just(0), 0..20_u64];
    let gate = (
        prop_oneof![1 => Just(0), 3 => 1..100_u64],
        0..200_u64,
        prop_oneof![Just(0), 0..4_usize],
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        0..60_u64,
    );
    let gate = gate.prop_map(|(quiet, more, max_in_flight, await_ready, interactive, max_hold)| GateRules {
        quiet: millis(quiet),
        gate_timeout: millis(quiet + more + 1),
        max_in_flight,
        await_ready,
        interactive,
        // Never holds a start: that has tests of its own.
        resume_quiet: Duration::ZERO,
        max_hold: millis(max_hold),
    });
    (prop_oneof![Just(1), 1..4_usize], 0..60_u64, pulse, monkey, gate, any::<u64>()).prop_map(
        |(concurrency, delay, pulse, monkey, gate, seed)| Settings {
            profile: Profile { concurrency, delay: millis(delay), pulse: millis(pulse), monkey },
            gate,
            seed,
        },
    )
}

fn declaration() -> impl Strategy<Value = Declaration> {
    let limit = || prop_oneof![3 => Just(None), 1 => (1..30_u64).prop_map(Some)];
    let flags = (
        prop::bool::weighted(0.9),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
        any::<bool>(),
        prop::bool::weighted(0.05),
    );
    let after = prop::collection::vec((0..32_usize, prop::bool::weighted(0.3)), 0..3);
    (any::<bool>(), after, limit(), limit(), flags).prop_map(
        |(idle, after, timeout, no_later_than, (condition, blocking, never_delay, inside, invalid))| {
            Declaration {
                queue: if idle { Queue::Idle } else { Queue::Normal },
                condition,
                after,
                timeout,
                no_later_than: no_later_than.filter(|_| idle),
                blocking,
                never_delay,
                inside,
                invalid,
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let verdict = || {
        prop_oneof![
            6 => Just(Verdict::Pending),
            6 => Just(Verdict::Completed),
            2 => Just(Verdict::Failed),
            2 => Just(Verdict::Panicked),
            1 => Just(Verdict::Skipped),
        ]
    };
    let task = || 0..32_usize;
    let lane = prop_oneof![
        8 => Just(Event::Turn),
        2 => Just(Event::Look),
        3 => Just(Event::Pick),
        8 => verdict().prop_map(Event::PollEnds),
        2 => Just(Event::GiveUpStuck),
        1 => (task(), verdict()).prop_map(|(n, verdict)| Event::StuckReturns(n, verdict)),
    ];
    let handles = prop_oneof![
        8 => declaration().prop_map(Event::Declare),
        6 => task().prop_map(Event::Wake),
        3 => task().prop_map(Event::Demand),
        2 => task().prop_map(Event::Cancel),
        6 => (prop::bool::weighted(0.2), task())
            .prop_map(|(stuck, target)| Event::WaitBegins { stuck, target }),
        1 => task().prop_map(Event::WaitEnds),
    ];
    let quiet = prop_oneof![
        2 => Just(Event::Ready),
        1 => Just(Event::OpenGate),
        1 => any::<bool>().prop_map(|failed| Event::Interactive { failed }),
        3 => (0..3_usize).prop_map(Event::RequestEnters),
        3 => (0..3_usize).prop_map(Event::RequestLeaves),
        2 => (50..120_u64).prop_map(Event::Stall),
        1 => (20..120_u64).prop_map(Event::LongTask),
        10 => Just(Event::Beat),
    ];
    let run = prop_oneof![
        6 => Just(Event::Seal),
        6 => Just(Event::AwaitEnd),
        3 => task().prop_map(Event::AwaitEndNoMore),
        2 => any::<bool>().prop_map(|lost| Event::Close { lost }),
        3 => Just(Event::CancelPiece),
        3 => Just(Event::EndRunning),
        1 => Just(Event::Flood),
    ];
    let wait = prop_oneof![20 => 0..5_u64, 20 => 0..80_u64, 1 => 29_000..31_000_u64];
    prop_oneof![
        28 => lane,
        20 => handles,
        8 => quiet,
        4 => run,
        9 => wait.prop_map(Event::Wait),
    ]
}

proptest! {
    // The events are printed; they are the repetition, so no file of seeds is kept.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::with_cases(cases())
    })]

    /// I2 to I6, I9 to I12, I14 to I16: `World::step` holds each after every event. Then every poll ends, a
    /// waiting task's after the one it waits for, and nothing else is needed for all to end.
    #[test]
    fn whatever_happens_every_law_holds_and_everything_ends(
        settings in settings(),
        events in prop::collection::vec(event(), 0..120),
    ) {
        let mut world = World::new(&settings);
        for event in &events {
            world.step(event);
        }
        world.drain();
    }

    /// I6, I14.
    #[test]
    fn a_shutdown_at_any_moment_leaves_no_handle_and_no_slot(
        settings in settings(),
        events in prop::collection::vec(event(), 0..80),
    ) {
        let mut world = World::new(&settings);
        for event in &events {
            world.step(event);
        }
        world.shut_down();
    }
}

/// 512, or what `PROPTEST_CASES` says.
fn cases() -> u32 {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default().cases,
        None => 512,
    }
}
