//! Random programs for the laws.

use proptest::prelude::*;

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) concurrency: usize,
    pub(crate) delay: u64,
    pub(crate) pulse: u64,
    pub(crate) await_ready: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) ending: Ending,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Declare(Declared),
    Demand(usize),
    Cancel(usize),
    GiveUp(usize, u64),
    Ready,
    OpenGate,
    Report,
    Sleep(u64),
    Jump(u64),
    Breathe,
}

#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) idle: bool,
    pub(crate) condition: bool,
    pub(crate) after: Vec<usize>,
    pub(crate) timeout: Option<u64>,
    pub(crate) awaits: Vec<u64>,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Value,
    Error,
    Panic,
    PanicInTheClosure,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    Finished,
    Shutdown(u64),
    ShutdownTwice(u64),
}

fn declared() -> impl Strategy<Value = Declared> {
    let end = prop_oneof![6 => Just(End::Value), 1 => Just(End::Error), 1 => Just(End::Panic), 1 => Just(End::PanicInTheClosure)];
    (
        any::<bool>(),
        prop::bool::weighted(0.9),
        prop::collection::vec(0..40_usize, 0..3),
        prop::option::weighted(0.3, 0..40_u64),
        prop::collection::vec(0..30_u64, 0..4),
        end,
    )
        .prop_map(|(idle, condition, after, timeout, awaits, end)| Declared {
            idle,
            condition,
            after,
            timeout,
            awaits,
            end,
        })
}

pub(crate) fn program() -> impl Strategy<Value = Program> {
    let step = prop_oneof![
        10 => declared().prop_map(Step::Declare),
        2 => (0..40_usize).prop_map(Step::Demand),
        2 => (0..40_usize).prop_map(Step::Cancel),
        1 => (0..40_usize, 0..20_u64).prop_map(|(place, millis)| Step::GiveUp(place, millis)),
        1 => Just(Step::Ready),
        1 => Just(Step::OpenGate),
        1 => Just(Step::Report),
        3 => (0..60_u64).prop_map(Step::Sleep),
        1 => (0..4_000_u64).prop_map(Step::Jump),
        2 => Just(Step::Breathe),
    ];
    let ending = prop_oneof![
        3 => Just(Ending::Finished),
        2 => (0..60_u64).prop_map(Ending::Shutdown),
        1 => (0..60_u64).prop_map(Ending::ShutdownTwice),
    ];
    (1..5_usize, 0..20_u64, 0..20_u64, any::<bool>(), prop::collection::vec(step, 1..40), ending).prop_map(
        |(concurrency, delay, pulse, await_ready, steps, ending)| Program {
            concurrency,
            delay,
            pulse,
            await_ready,
            steps,
            ending,
        },
    )
}
