//! A random program.

use crate::random::Random;

/// What one seed stands for.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    /// Two workers and real time; else one thread and a paused clock.
    pub(crate) multi_thread: bool,
    pub(crate) concurrency: usize,
    pub(crate) delay: u64,
    pub(crate) pulse: u64,
    pub(crate) await_ready: bool,
    pub(crate) monkey: Option<u64>,
    /// Whether any task may never end by itself.
    pub(crate) endless: bool,
    pub(crate) acts: Vec<Act>,
    pub(crate) ending: Ending,
}

/// What the application does.
#[derive(Debug)]
pub(crate) enum Act {
    Declare(Declared),
    Sleep(u64),
    Demand(usize),
    GiveUp(usize, u64),
    Cancel(usize),
    Ready,
    OpenGate,
    Report,
    Listen,
    Snapshot,
}

#[derive(Debug, Clone)]
pub(crate) struct Declared {
    pub(crate) idle: bool,
    pub(crate) blocking: bool,
    pub(crate) condition: bool,
    pub(crate) at_start: Option<bool>,
    pub(crate) timeout: Option<u64>,
    pub(crate) no_later_than: Option<u64>,
    /// Among those declared before; and whether their mere end will do.
    pub(crate) after: Vec<(usize, bool)>,
    pub(crate) steps: Vec<Step>,
}

/// What a task does.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Await(u64),
    Yield,
    Burn(u64),
    Block(u64),
    Spawn {
        waits_for: Option<usize>,
        panics: bool,
        joined: bool,
    },
    Wait(usize),
    WaitFor(usize, u64),
    /// Waits and blocks in one poll.
    WaitAndBlock(usize, u64),
    Demand(usize),
    Cancel(usize),
    Declare(Box<Declared>),
    AwaitTheEnd(u64),
    WakeLater(u64),
    Panic,
    PanicWhenDropped,
    Fail,
    NeverEnd,
}

#[derive(Debug)]
pub(crate) enum Ending {
    /// Of itself, then a shutdown.
    Finished,
    Shutdown(u64),
    /// Given up, and asked for again.
    ShutdownTwice(u64),
    /// The runtime goes away in the middle.
    Background,
    Timeout,
    Drop,
}

impl Program {
    pub(crate) fn of(seed: u64) -> Program {
        let mut random = Random::new(seed);
        let multi_thread = random.often(50);
        let endless = random.often(30);
        let mut acts = Vec::new();
        for _ in 0..2 + random.below(24) {
            acts.push(act(&mut random, endless, multi_thread));
        }
        let ending = match random.below(12) {
            0..=5 => Ending::Finished,
            6..=7 => Ending::Shutdown(random.millis(20)),
            8 => Ending::ShutdownTwice(random.millis(20)),
            9 => Ending::Background,
            10 => Ending::Timeout,
            _ => Ending::Drop,
        };
        Program {
            seed,
            multi_thread,
            concurrency: 1 + random.below(4),
            delay: random.millis(3),
            pulse: random.millis(3),
            await_ready: random.often(20),
            monkey: random.sometimes(20, |random| random.millis(30)),
            endless,
            acts,
            ending,
        }
    }
}

fn act(random: &mut Random, endless: bool, multi_thread: bool) -> Act {
    match random.below(24) {
        0..=14 => Act::Declare(declared(random, endless, multi_thread, 2)),
        15..=16 => Act::Sleep(random.millis(8)),
        17 => Act::Demand(random.below(40)),
        18 => Act::GiveUp(random.below(40), random.millis(6)),
        19 => Act::Cancel(random.below(40)),
        20 => Act::Ready,
        21 => Act::OpenGate,
        22 if random.often(50) => Act::Report,
        22 => Act::Listen,
        _ => Act::Snapshot,
    }
}

/// `depth`: how often a task may still declare others.
fn declared(random: &mut Random, endless: bool, multi_thread: bool, depth: usize) -> Declared {
    let blocking = random.often(8);
    let idle = random.often(35);
    Declared {
        idle,
        blocking,
        condition: random.often(93),
        at_start: random.sometimes(8, |random| random.often(70)),
        timeout: random.sometimes(20, |random| 1 + random.millis(25)),
        no_later_than: random.sometimes(15, |random| 1 + random.millis(20)).filter(|_| idle),
        after: random
            .list(2 + usize::from(depth > 1), |random| (random.below(40), random.often(30)))
            .into_iter()
            .collect(),
        steps: random.list(6, |random| step(random, endless, multi_thread, depth)),
    }
}

fn step(random: &mut Random, endless: bool, multi_thread: bool, depth: usize) -> Step {
    // A stuck poll takes real time: few of them, and only where somebody can take over.
    let block = |random: &mut Random| if multi_thread && random.often(25) { 25 } else { 1 };
    match random.below(40) {
        0..=6 => Step::Await(random.millis(6)),
        7..=10 => Step::Yield,
        11 => Step::Burn(random.millis(400)),
        12 => Step::Block(block(random)),
        13..=14 => Step::Spawn {
            waits_for: random.sometimes(40, |random| random.below(40)),
            panics: random.often(20),
            joined: random.often(60),
        },
        15..=19 => Step::Wait(random.below(40)),
        20..=22 => Step::WaitFor(random.below(40), random.millis(8)),
        23 => Step::WaitAndBlock(random.below(40), block(random)),
        24..=26 => Step::Demand(random.below(40)),
        27 => Step::Cancel(random.below(40)),
        28..=30 if depth > 0 => Step::Declare(Box::new(declared(random, endless, multi_thread, depth - 1))),
        31 => Step::AwaitTheEnd(random.millis(8)),
        32..=33 => Step::WakeLater(random.millis(4)),
        34 => Step::Panic,
        35 => Step::PanicWhenDropped,
        36 => Step::Fail,
        37 if endless => Step::NeverEnd,
        _ => Step::Await(0),
    }
}
