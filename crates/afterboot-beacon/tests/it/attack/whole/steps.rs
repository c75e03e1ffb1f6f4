//! What may be called, and with what.

use std::time::Duration;

use afterboot_beacon::wire::MAX_BODY;
use proptest::prelude::*;

use super::far::Mood;

pub(super) const USERS: [Option<&str>; 4] = [None, Some("a"), Some("b\n\0\""), Some("c")];

#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) size: u32,
    pub(super) vital: bool,
    pub(super) signal: bool,
    pub(super) durable: bool,
    pub(super) delay: Option<Duration>,
    pub(super) keep: Option<Duration>,
    pub(super) merge: Option<u8>,
}

impl Wish {
    pub(super) fn small(vital: bool) -> Wish {
        Wish { size: 10, vital, signal: false, durable: false, delay: None, keep: None, merge: None }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Post(Wish),
    Many(u8, bool),
    Wait(u32),
    User(usize),
    Session(u8),
    Offline,
    Online,
    Server(Mood),
    Flush { ms: u32, waits: bool },
    Checkpoint { ms: u32, waits: bool },
    Erase(usize),
    Replay,
    Purge,
    Restart { ms: u32, says_so: bool },
}

#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) seed: u64,
    pub(super) events: usize,
    pub(super) batch_events: usize,
    pub(super) batch_bytes: usize,
    pub(super) tight: bool,
    pub(super) spool: Option<u64>,
    pub(super) spread: u64,
}

pub(super) fn setting() -> impl Strategy<Value = Setting> {
    (
        any::<u64>(),
        prop::sample::select(vec![1, 5, 40, 20_000]),
        prop::sample::select(vec![1, 10, 100]),
        prop::sample::select(vec![1024, 8192, MAX_BODY]),
        any::<bool>(),
        prop::sample::select(vec![None, Some(512 << 10), Some(64 << 20), Some(64 << 20)]),
        prop::sample::select(vec![0, 30]),
    )
        .prop_map(|(seed, events, batch_events, batch_bytes, tight, spool, spread)| Setting {
            seed,
            events,
            batch_events,
            batch_bytes,
            tight,
            spool,
            spread,
        })
}

fn wish() -> impl Strategy<Value = Wish> {
    let size =
        prop_oneof![8 => 0..300u32, 2 => 300..9000u32, 1 => 50_000..66_000u32, 1 => 66_000..400_000u32];
    let delay = prop::sample::select(vec![Duration::ZERO, Duration::from_secs(3), Duration::MAX]);
    let keep = prop::sample::select(vec![Duration::ZERO, Duration::from_secs(20), Duration::MAX]);
    (
        size,
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.25),
        prop::option::weighted(0.2, delay),
        prop::option::weighted(0.1, keep),
        prop::option::weighted(0.3, 0..3u8),
    )
        .prop_map(|(size, vital, signal, durable, delay, keep, merge)| Wish {
            size,
            vital,
            signal,
            durable,
            delay,
            keep,
            merge,
        })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    use Mood::{Anything, Down, Partial, Slow, Small, Well};
    let wait = prop_oneof![0..50u32, 50..3000u32, 3000..40_000u32, 100_000..700_000u32];
    let mood = prop::sample::select(vec![Well, Down, Anything, Anything, Partial, Partial, Small, Slow]);
    let ms = || prop::sample::select(vec![0, 5, 400, 3000, 20_000]);
    prop_oneof![
        10 => wish().prop_map(Step::Post),
        3 => (1..120u8, any::<bool>()).prop_map(|(count, vital)| Step::Many(count, vital)),
        8 => wait.prop_map(Step::Wait),
        3 => (0..USERS.len()).prop_map(Step::User),
        1 => (0..2u8).prop_map(Step::Session),
        1 => Just(Step::Offline),
        2 => Just(Step::Online),
        4 => mood.prop_map(Step::Server),
        2 => (ms(), any::<bool>()).prop_map(|(ms, waits)| Step::Flush { ms, waits }),
        2 => (ms(), any::<bool>()).prop_map(|(ms, waits)| Step::Checkpoint { ms, waits }),
        1 => (1..USERS.len()).prop_map(Step::Erase),
        1 => Just(Step::Replay),
        1 => Just(Step::Purge),
        1 => (ms(), any::<bool>()).prop_map(|(ms, says_so)| Step::Restart { ms, says_so }),
    ]
}
