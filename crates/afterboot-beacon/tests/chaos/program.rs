//! What a seed stands for.

use std::time::Duration;

use crate::random::Random;

pub(crate) const USERS: [Option<&str>; 4] = [None, Some("a"), Some("b\n\0\""), Some("c")];

#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    pub(crate) events: usize,
    pub(crate) batch_events: usize,
    pub(crate) batch_bytes: usize,
    pub(crate) tight: bool,
    pub(crate) spool_bytes: u64,
    pub(crate) spread: u64,
    /// The server's, at the start.
    pub(crate) mood: Mood,
    pub(crate) acts: Vec<Act>,
}

#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) size: usize,
    pub(crate) vital: bool,
    pub(crate) signal: bool,
    pub(crate) durable: bool,
    pub(crate) delay: Option<Duration>,
    pub(crate) keep: Option<Duration>,
    pub(crate) merge: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    Well,
    /// The connection breaks, before or after the events were taken.
    Broken,
    Hangs,
    Slow,
    /// Asks for some events again, and rejects some.
    Partial,
    /// Takes only small bodies.
    Small,
    /// The answer to an earlier batch comes in the place of this one's.
    Twice,
    /// 2xx that is no ack, acks that do not add up.
    Wrong,
    /// Any status, with and without `retry-after`.
    Status,
    /// Any of these.
    Anything,
}

const MOODS: [Mood; 14] = [
    Mood::Well,
    Mood::Broken,
    Mood::Broken,
    Mood::Hangs,
    Mood::Slow,
    Mood::Partial,
    Mood::Small,
    Mood::Twice,
    Mood::Twice,
    Mood::Wrong,
    Mood::Status,
    Mood::Anything,
    Mood::Anything,
    Mood::Anything,
];

#[derive(Debug, Clone)]
pub(crate) enum Act {
    Post(Wish),
    Many(usize, bool),
    Wait(u64),
    User(usize),
    Session(bool),
    Online(bool),
    Server(Mood),
    Flush {
        ms: u64,
        waits: bool,
    },
    Checkpoint {
        ms: u64,
        waits: bool,
    },
    Erase(usize),
    ReplayDead,
    PurgeDead,
    /// Another beacon over the same folder, and this one leaves.
    Restart {
        ms: u64,
        says_so: bool,
    },
    /// As kill -9: what is on disk now is all that the next one finds.
    Kill,
    /// A second beacon over the folder, which is posted to from now on.
    Another,
    /// Somebody deletes: the folder, or files of this kind in it.
    Remove(&'static str),
    /// Somebody writes into the database.
    Corrupt(Corruption),
    /// Somebody else holds the database for so many real milliseconds.
    Lock(u64),
    /// The wall clock is set by so many milliseconds.
    Clock(i64),
    /// There are threads to be had for the disk, or there is none.
    Threads(bool),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Corruption {
    /// A row's body.
    Row,
    /// A byte in every page.
    Pages,
}

/// Milliseconds: seconds, an hour, a week and forty years, forward and back.
const STEPS: [i64; 8] =
    [-4_000, 4_000, 3_600_000, -3_600_000, 604_800_000, -604_800_000, 1_262_304_000_000, -1_262_304_000_000];

/// Tells the numbers for the machine from the others.
const MACHINE: u64 = 0x6d61_6368_696e_6500;

impl Program {
    pub(crate) fn of(seed: u64) -> Program {
        let random = &mut Random::new(seed);
        // Faults of one kind at a time in a part of the programs: what one hides, the other shows.
        let faulty_disk = random.often(60);
        let length = 5 + random.below(60);
        let mut program = Program {
            seed,
            events: random.one(&[1, 5, 40, 20_000, 20_000]),
            batch_events: random.one(&[1, 10, 100]),
            batch_bytes: random.one(&[1024, 8192, 65_536]),
            tight: random.often(30),
            spool_bytes: random.one(&[512 << 10, 64 << 20, 64 << 20]),
            spread: random.one(&[0, 30]),
            mood: random.one(&MOODS),
            acts: (0..length).map(|_| act(random, faulty_disk)).collect(),
        };
        program.trouble_the_machine();
        program
    }

    /// By numbers of its own, so that the rest of a seed's program stays what it was.
    fn trouble_the_machine(&mut self) {
        let random = &mut Random::new(self.seed ^ MACHINE);
        let (clock, threads) = (random.often(50), random.often(40));
        let (mut steps, mut refusals) = (0, 0);
        if clock {
            steps = 1 + random.below(4);
        }
        if threads {
            refusals = 1 + random.below(3);
        }
        for _ in 0..steps {
            let by = random.one(&STEPS);
            self.acts.insert(random.below(self.acts.len() + 1), Act::Clock(by));
        }
        for _ in 0..refusals {
            let from = random.below(self.acts.len() + 1);
            self.acts.insert(from, Act::Threads(false));
            // A thread is asked for by a beacon that begins: without one, this is no trouble.
            let ms = budget(random);
            self.acts.insert(from + 1, Act::Restart { ms, says_so: random.often(80) });
            let until = from + 2 + random.below(self.acts.len() - from - 1);
            self.acts.insert(until, Act::Threads(true));
        }
    }

    /// A spool that is full may give up what it holds.
    pub(crate) fn is_roomy(&self) -> bool {
        self.spool_bytes > 1 << 20
    }
}

impl Wish {
    pub(crate) fn small(vital: bool) -> Wish {
        Wish { size: 10, vital, signal: false, durable: false, delay: None, keep: None, merge: None }
    }

    fn of(random: &mut Random) -> Wish {
        let delays = [Duration::ZERO, Duration::from_secs(3), Duration::MAX];
        let lives = [Duration::ZERO, Duration::from_secs(20), Duration::MAX];
        Wish {
            size: match random.below(12) {
                0..8 => random.below(300),
                8..10 => 300 + random.below(9000),
                10 => 50_000 + random.below(16_000),
                _ => 66_000 + random.below(340_000),
            },
            vital: random.often(50),
            signal: random.often(10),
            durable: random.often(30),
            delay: random.sometimes(20, |random| random.one(&delays)),
            keep: random.sometimes(10, |random| random.one(&lives)),
            merge: random.sometimes(30, |random| random.below(3) as u8),
        }
    }
}

fn budget(random: &mut Random) -> u64 {
    random.one(&[0, 5, 400, 3000, 20_000])
}

fn act(random: &mut Random, faulty_disk: bool) -> Act {
    match random.below(if faulty_disk { 50 } else { 44 }) {
        0..12 => Act::Post(Wish::of(random)),
        12..15 => Act::Many(1 + random.below(120), random.often(50)),
        15..24 => Act::Wait(match random.below(5) {
            0 | 1 => random.below(50) as u64,
            2 => random.below(3000) as u64,
            3 => 3000 + random.below(37_000) as u64,
            _ => 100_000 + random.below(600_000) as u64,
        }),
        24..27 => Act::User(random.below(USERS.len())),
        27 => Act::Session(random.often(50)),
        28 => Act::Online(random.often(60)),
        29..34 => Act::Server(random.one(&MOODS)),
        34 | 35 => Act::Flush { ms: budget(random), waits: random.often(50) },
        36 | 37 => Act::Checkpoint { ms: budget(random), waits: random.often(50) },
        38 => Act::Erase(1 + random.below(USERS.len() - 1)),
        39 => Act::ReplayDead,
        40 => Act::PurgeDead,
        41 => Act::Restart { ms: budget(random), says_so: random.often(60) },
        42 => Act::Kill,
        43 => Act::Another,
        44 | 45 => Act::Remove(random.one(&["", "spool.db", "-wal", "-shm", "spool.db*"])),
        46 | 47 => Act::Corrupt(random.one(&[Corruption::Row, Corruption::Row, Corruption::Pages])),
        _ => Act::Lock(random.one(&[5, 50, 300, 1300])),
    }
}
