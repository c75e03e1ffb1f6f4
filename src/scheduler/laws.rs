//! The laws of the core, held under random events: cited by their numbers in `DESIGN.md`.

mod world;

use std::time::Duration;

use proptest::prelude::*;

use self::world::World;
use crate::gate::GateRules;
use crate::monkey::{Delivery, Monkey};
use crate::outcome::{CancelReason, Outcome, SkipReason};
use crate::profile::Profile;
use crate::queue::Queue;

/// One thing that happens to the core. Numbers of tasks are taken modulo how many there are.
#[derive(Debug, Clone)]
enum Event {
    Declare(Declaration),
    /// The lane looks, and polls what it picks; the poll lasts until `PollEnds`.
    Turn {
        start_first: bool,
    },
    PollEnds(Verdict),
    Wake(usize),
    Demand(usize),
    Cancel(usize),
    Ready,
    OpenGate,
    InFlight {
        over: bool,
    },
    /// The probe saw a stall of so many milliseconds that ended now.
    Stall(u64),
    Beat,
    Wait(u64),
    Seal,
    /// The task that is polled awaits `finished()`.
    AwaitEnd,
    Close,
    CancelQueued {
        most: usize,
    },
    EndRunning,
}

#[derive(Debug, Clone)]
struct Declaration {
    queue: Queue,
    condition: bool,
    after: Vec<usize>,
    timeout: Option<u64>,
    blocking: bool,
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
}

impl Verdict {
    fn outcome(self) -> Option<Outcome> {
        match self {
            Verdict::Pending => None,
            Verdict::Completed => Some(Outcome::Completed),
            Verdict::Failed => Some(Outcome::Failed("no".into())),
            Verdict::Panicked => Some(Outcome::Panicked("boom".into())),
        }
    }
}

#[derive(Debug, Clone)]
struct Settings {
    profile: Profile,
    gate: GateRules,
    seed: u64,
}

fn settings() -> impl Strategy<Value = Settings> {
    let monkey = prop_oneof![
        3 => Just(None),
        1 => (0..50_u64).prop_map(|delay| Some(Monkey::random(Duration::from_millis(delay)))),
        1 => (0..4_usize, 0..50_u64).prop_map(|(n, delay)| Some(Monkey::index(n, Duration::from_millis(delay)))),
    ];
    let gate = (prop_oneof![Just(0), 1..100_u64], 0..200_u64, any::<bool>());
    (1..4_usize, 0..20_u64, 0..20_u64, monkey, gate, any::<u64>()).prop_map(
        |(concurrency, delay, pulse, monkey, (quiet, more, await_ready), seed)| {
            let (delay, pulse) = (Duration::from_millis(delay), Duration::from_millis(pulse));
            Settings {
                profile: Profile { concurrency, delay, pulse, monkey },
                gate: GateRules {
                    quiet: Duration::from_millis(quiet),
                    timeout: Duration::from_millis(quiet + more + 1),
                    max_in_flight: 2,
                    await_ready,
                },
                seed,
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let declaration = (
        prop_oneof![Just(Queue::Normal), Just(Queue::Idle)],
        prop::bool::weighted(0.9),
        prop::collection::vec(0..8_usize, 0..3),
        prop_oneof![3 => Just(None), 1 => (1..30_u64).prop_map(Some)],
        prop::bool::weighted(0.2),
        any::<bool>(),
        prop::bool::weighted(0.05),
    );
    let declaration =
        declaration.prop_map(|(queue, condition, after, timeout, blocking, inside, invalid)| Declaration {
            queue,
            condition,
            after,
            timeout,
            blocking,
            inside,
            invalid,
        });
    let verdict = prop_oneof![
        3 => Just(Verdict::Pending),
        3 => Just(Verdict::Completed),
        1 => Just(Verdict::Failed),
        1 => Just(Verdict::Panicked),
    ];
    prop_oneof![
        6 => declaration.prop_map(Event::Declare),
        12 => any::<bool>().prop_map(|start_first| Event::Turn { start_first }),
        8 => verdict.prop_map(Event::PollEnds),
        4 => (0..8_usize).prop_map(Event::Wake),
        2 => (0..8_usize).prop_map(Event::Demand),
        2 => (0..8_usize).prop_map(Event::Cancel),
        1 => Just(Event::Ready),
        1 => prop::bool::weighted(0.2).prop_map(|open| if open { Event::OpenGate } else { Event::Beat }),
        1 => any::<bool>().prop_map(|over| Event::InFlight { over }),
        1 => (50..120_u64).prop_map(Event::Stall),
        3 => Just(Event::Beat),
        8 => prop_oneof![0..5_u64, 0..80_u64].prop_map(Event::Wait),
        1 => Just(Event::Seal),
        1 => Just(Event::AwaitEnd),
        1 => prop::bool::weighted(0.1).prop_map(|close| if close { Event::Close } else { Event::Beat }),
        1 => (1..4_usize).prop_map(|most| Event::CancelQueued { most }),
        1 => Just(Event::EndRunning),
    ]
}

proptest! {
    // The events are printed; they are the repetition, so no file of seeds is kept.
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// I2, I3, I4, I5, I6, I10, I11, I12, I15, I16: `World::step` holds each after every event.
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
        for (i, task) in world.tasks.iter().enumerate() {
            prop_assert!(task.outcome.is_some(), "{} is forgotten", world.name(i));
        }
        if let Some(mischief) = world.core.mischief().filter(|mischief| mischief.victim.is_some()) {
            prop_assert!(!matches!(mischief.delivery, Delivery::Pending | Delivery::Delaying), "{mischief:?}");
        }
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

fn plain() -> Settings {
    Settings {
        profile: Profile::default(),
        gate: GateRules {
            quiet: Duration::from_millis(500),
            timeout: Duration::from_secs(45),
            max_in_flight: 2,
            await_ready: false,
        },
        seed: 7,
    }
}

fn normal() -> Declaration {
    Declaration {
        queue: Queue::Normal,
        condition: true,
        after: Vec::new(),
        timeout: None,
        blocking: false,
        inside: false,
        invalid: false,
    }
}

fn idle() -> Declaration {
    Declaration { queue: Queue::Idle, ..normal() }
}

/// The world after these events, each of which has held every law.
fn after(settings: &Settings, events: impl IntoIterator<Item = Event>) -> World {
    let mut world = World::new(settings);
    for event in events {
        world.step(&event);
    }
    world
}

use Event::{
    Beat, Cancel, CancelQueued, Close, Declare, Demand, EndRunning, PollEnds, Seal, Turn, Wait, Wake,
};

const TURN: Event = Turn { start_first: true };

/// I4.
#[test]
fn an_idle_task_declared_first_does_not_hold_back_a_normal_one() {
    let world = after(&plain(), [Declare(idle()), Declare(normal()), Wait(1), TURN]);
    assert_eq!(world.polling, Some(1));
}

/// I2: an await holds its slot.
#[test]
fn a_slot_is_held_from_start_to_end_and_not_only_during_polls() {
    let settings = Settings { profile: Profile::default().concurrency(1), ..plain() };
    let mut world = after(
        &settings,
        [Declare(normal()), Declare(normal()), Wait(1), TURN, PollEnds(Verdict::Pending), Wait(9), TURN],
    );
    assert_eq!(world.polling, None);
    for event in [Wake(0), TURN, PollEnds(Verdict::Panicked), Wait(1), TURN] {
        world.step(&event);
    }
    assert_eq!(world.polling, Some(1));
}

/// I5: a demanded start is no way round the delay.
#[test]
fn a_demanded_start_does_not_shorten_the_delay_of_the_ordinary_ones() {
    let settings = Settings { profile: Profile::default().delay(Duration::from_secs(1)), ..plain() };
    let events =
        [Declare(normal()), Declare(normal()), Demand(0), TURN, PollEnds(Verdict::Completed), Wait(5), TURN];
    let world = after(&settings, events);
    assert_eq!(world.tasks[1].started, None, "the delay is a second, counted from the first declaration");
}

/// I11, I19: the successors of a task that runs on are over too.
#[test]
fn what_comes_after_a_blocking_task_that_timed_out_is_counted_once() {
    let blocking = Declaration { blocking: true, timeout: Some(10), ..normal() };
    let successor = Declaration { after: vec![0], ..normal() };
    let events = [
        Declare(blocking),
        Declare(successor),
        Wait(1),
        TURN,
        PollEnds(Verdict::Pending),
        Wait(10),
        TURN,
        Wake(0),
        TURN,
    ];
    let mut world = after(&plain(), events);
    assert_eq!(world.tasks[0].outcome, Some(Outcome::TimedOut { still_running: true }));
    assert_eq!(world.tasks[1].outcome, Some(Outcome::Skipped(SkipReason::Predecessor("task 0".into()))));
    world.step(&PollEnds(Verdict::Completed));
    assert!(!world.core.has_work());
}

/// I14: from `shutdown` on nothing starts, also before its future is polled.
#[test]
fn nothing_starts_between_the_call_of_shutdown_and_its_first_poll() {
    let world = after(&plain(), [Declare(normal()), Wait(1), Close, TURN]);
    assert_eq!(world.polling, None);
}

/// I14: a task is cancelled in pieces; what a running one completes meanwhile starts nothing.
#[test]
fn a_successor_of_a_task_that_completes_during_the_shutdown_does_not_start() {
    let successor = Declaration { after: vec![0], ..normal() };
    let mut world = after(&plain(), [Declare(normal()), Declare(successor), Wait(1), TURN, Close]);
    for event in
        [CancelQueued { most: 1 }, PollEnds(Verdict::Completed), Wait(5), TURN, CancelQueued { most: 1 }]
    {
        world.step(&event);
    }
    assert_eq!(world.tasks[1].outcome, Some(Outcome::Cancelled(CancelReason::Shutdown)));
}

/// I14.
#[test]
fn a_poll_in_progress_at_the_deadline_is_abandoned_and_its_slot_returned_after_it() {
    let mut world =
        after(&plain(), [Declare(normal()), Wait(1), TURN, Close, CancelQueued { most: 9 }, EndRunning]);
    assert_eq!(world.tasks[0].outcome, Some(Outcome::Abandoned));
    assert!(world.core.has_work());
    world.step(&PollEnds(Verdict::Pending));
    assert!(!world.core.has_work());
}

/// I15: a demand before `report()` is a demand.
#[test]
fn a_victim_that_was_demanded_before_the_report_is_not_said_to_wait_for_its_turn() {
    let settings =
        Settings { profile: Profile::default().monkey(Monkey::index(0, Duration::from_secs(60))), ..plain() };
    let world = after(&settings, [Declare(normal()), Demand(0), Seal, TURN, PollEnds(Verdict::Completed)]);
    let mischief = world.core.mischief().unwrap();
    assert_eq!(mischief.delivery, Delivery::Demanded);
}

/// I15: what was skipped has not started.
#[test]
fn a_victim_that_was_skipped_is_not_said_to_have_started() {
    let settings =
        Settings { profile: Profile::default().monkey(Monkey::index(0, Duration::from_secs(60))), ..plain() };
    let skipped = Declaration { condition: false, ..normal() };
    let world = after(&settings, [Declare(skipped), Declare(normal()), Seal]);
    assert_eq!(world.core.mischief().unwrap().delivery, Delivery::NotDelivered);
}

/// I12: a window in which nobody looked is none.
#[test]
fn an_idle_task_that_comes_later_waits_for_a_window_of_its_own() {
    let demanded = [Declare(idle()), Demand(0), TURN, PollEnds(Verdict::Completed), Beat, Wait(10_000)];
    let mut world = after(&plain(), demanded);
    assert!(!world.core.wants_probe(), "nobody has looked for ten seconds");
    for event in [Declare(idle()), Wait(7), Beat] {
        world.step(&event);
    }
    assert!(!world.core.gate().is_open());
    for event in [Wait(493), Beat] {
        world.step(&event);
    }
    assert!(world.core.gate().is_open());
}

/// I9, I10: who is demanded brings what it comes after.
#[test]
fn a_demand_reaches_through_a_chain_and_past_a_full_house() {
    let settings = Settings { profile: Profile::default().concurrency(1), ..plain() };
    let successor = Declaration { after: vec![1], ..idle() };
    let events =
        [Declare(normal()), Declare(idle()), Declare(successor), Wait(1), TURN, PollEnds(Verdict::Pending)];
    let mut world = after(&settings, events);
    for event in [Demand(2), TURN, PollEnds(Verdict::Completed), TURN] {
        world.step(&event);
    }
    assert_eq!(world.polling, Some(2));
}

/// I6, I10: a diamond of predecessors skips its end once.
#[test]
fn two_predecessors_that_fail_skip_their_successor_once() {
    let [a, b] = [0, 1].map(|n| Declaration { after: vec![n], ..normal() });
    let end = Declaration { after: vec![1, 2], ..normal() };
    let mut world = after(
        &plain(),
        [Declare(normal()), Declare(a), Declare(Declaration { after: vec![0], ..b }), Declare(end)],
    );
    for event in [Cancel(0), TURN] {
        world.step(&event);
    }
    assert!(!world.core.has_work());
}

/// I12: the probe looks every few milliseconds, and each time both workers are still held.
#[test]
fn two_workers_that_are_held_at_the_same_time_make_two_long_tasks_however_often_they_are_seen() {
    let mut world = after(&plain(), [Declare(idle()), Wait(100)]);
    let began = world.now;
    for _ in 0..10 {
        world.step(&Wait(6));
        for worker in [0, 1] {
            world.core.saw_stall(began, world.now, Some(worker));
        }
    }
    assert_eq!(world.core.stalls().seen().count(), 2);
}
