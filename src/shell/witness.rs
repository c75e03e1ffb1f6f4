//! The witness: a thread that sleeps 10 ms at a time and notes when it was not woken. What it missed, the whole process did:
//! it was stopped (`SIGSTOP`, a debugger, a virtual machine that was put to rest), and no task of it was long.
//!
//! One for all governors of a process, while one of them has a lane. CPU time would not tell: a poll that sleeps uses none
//! and holds its worker all the same.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::catch::logged;

/// How long the witness sleeps.
const PERIOD: Duration = Duration::from_millis(10);
/// A thread that only sleeps is woken within a few milliseconds also where all cores are busy. Less than half of a long
/// task, so that what is left of a short poll in a stop that counts is none.
const LATE: Duration = Duration::from_millis(20);
/// How many stretches are kept; they are asked for within moments.
const KEPT: usize = 64;
/// How long the thread stays when nobody needs it: a service that declares a task now and then does not make a thread each
/// time.
const LINGERS: Duration = Duration::from_secs(1);

static SEEN: Mutex<Seen> = Mutex::new(Seen::new());
static NEEDED: Condvar = Condvar::new();

struct Seen {
    users: usize,
    /// The process that the thread was made in: a fork has none.
    thread: Option<u32>,
    /// When the witness last slept.
    last: Option<Instant>,
    /// What it missed, the last of it numbered `number`.
    missed: VecDeque<(Instant, Instant)>,
    number: u64,
}

impl Seen {
    const fn new() -> Seen {
        Seen { users: 0, thread: None, last: None, missed: VecDeque::new(), number: 0 }
    }

    /// The witness runs now.
    fn wakes(&mut self, now: Instant) {
        if let Some(stretch) = self.missing(now) {
            if self.missed.len() == KEPT {
                self.missed.pop_front();
            }
            self.missed.push_back(stretch);
            self.number += 1;
        }
        self.last = Some(now);
    }

    /// What it misses at this moment, if it should have run by now.
    fn missing(&self, now: Instant) -> Option<(Instant, Instant)> {
        let due = self.last?.checked_add(PERIOD)?;
        (now.saturating_duration_since(due) >= LATE).then_some((due, now))
    }
}

fn lock() -> MutexGuard<'static, Seen> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it is held, the witness runs, if a thread could be had.
#[derive(Debug)]
pub(crate) struct Attendance {
    /// No thread could be had.
    pub(crate) refused: bool,
}

/// Makes the witness's thread, where none runs.
pub(crate) fn attend() -> Attendance {
    let mut seen = lock();
    let here = std::process::id();
    let mut refused = None;
    if seen.thread != Some(here) {
        if seen.thread.is_some() {
            // This process was forked from the one with that thread and those users.
            seen.users = 0;
        }
        seen.thread = Some(here);
        if let Err(error) = thread::Builder::new().name("afterboot witness".to_owned()).spawn(run) {
            (seen.thread, seen.last) = (None, None);
            refused = Some(error);
        }
    }
    if seen.users == 0 || seen.last.is_none() {
        // From now on, not from when a thread of it last ran.
        seen.last = seen.thread.map(|_| now());
    }
    seen.users += 1;
    drop(seen);
    NEEDED.notify_all();
    if let Some(error) = &refused {
        logged(
            || tracing::warn!(target: "afterboot", %error, "no thread for the witness: long tasks are not attributed"),
        );
    }
    Attendance { refused: refused.is_some() }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let mut seen = lock();
        // In a fork the count is of users that the fork does not have.
        seen.users = seen.users.saturating_sub(1);
    }
}

#[expect(clippy::disallowed_methods, reason = "whether the process runs is real time")]
fn now() -> Instant {
    Instant::now()
}

fn run() {
    let here = std::process::id();
    let mut seen = lock();
    while seen.thread == Some(here) {
        seen.wakes(now());
        let needed = seen.users > 0;
        let rest = if needed { PERIOD } else { LINGERS };
        seen = NEEDED.wait_timeout(seen, rest).unwrap_or_else(PoisonError::into_inner).0;
        if !needed {
            if seen.users == 0 {
                (seen.thread, seen.last) = (None, None);
                return;
            }
            // Nobody was watched while nobody needed it.
            seen.last = Some(now());
        }
    }
}

/// What the witness knows.
#[derive(Debug)]
pub(crate) struct Testimony {
    /// False if no thread could be obtained: then a stop cannot be distinguished from a long poll.
    pub(crate) attended: bool,
    /// The stretches it missed, as far as they are new, and the one it misses now.
    pub(crate) missed: Vec<(Instant, Instant)>,
}

/// What was missed since the one numbered `told`, which is brought up to date.
pub(crate) fn ask(told: &mut u64) -> Testimony {
    let seen = lock();
    let new = usize::try_from(seen.number.saturating_sub(*told)).unwrap_or(KEPT).min(seen.missed.len());
    *told = seen.number;
    let mut missed: Vec<_> = seen.missed.range(seen.missed.len() - new..).copied().collect();
    missed.extend(seen.missing(now()));
    Testimony { attended: seen.thread.is_some(), missed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_witness_missed_is_known_before_it_wakes_and_once_it_has() {
        let begun = now();
        let at = |millis| begun + Duration::from_millis(millis);
        let mut seen = Seen::new();
        seen.wakes(at(0));
        seen.wakes(at(11));
        assert_eq!(seen.missing(at(40)), None);
        assert_eq!(seen.missing(at(500)), Some((at(21), at(500))));
        seen.wakes(at(503));
        assert_eq!(seen.missing(at(504)), None);
        assert_eq!(seen.missed, [(at(21), at(503))]);
    }
}
