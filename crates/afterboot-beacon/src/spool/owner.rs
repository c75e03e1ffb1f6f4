//! Who holds a directory: a process, and not the children that were forked off it.
//!
//! The lock on `lock` is the open file's. A forked child has that file open too, so the lock outlives the process that
//! took it for as long as the child lives. The owner of a directory therefore locks the file `alive` as well, with a lock
//! that belongs to the process, and writes its process id into `lock`. Where `lock` is taken and says that it is another
//! process's, `alive` decides.
//!
//! Locks of that kind have a trap: a process loses them when it closes any descriptor of the file. So `alive` is not opened
//! in a directory that this process holds, and in a process one at a time takes a directory or lets one go.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, fcntl_lock};
use rustix::io::Errno;

use super::file_id::same_file;
use crate::base::random::random;

const ALIVE: &str = "alive";

/// What this makes in a directory.
pub(super) const MADE: &[&str] = &[ALIVE];

// Written over one another in one piece, so that a reader finds one of them.
const NAME_BYTES: usize = 48;
const NO_OWNER: [u8; NAME_BYTES] = [b'-'; NAME_BYTES];

/// Who a lock file says has the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Nothing: it is being made, or an older version of this crate has it.
    Nothing,
    Us,
    /// Or no process.
    Another,
}

/// This process: its children have another number, and another process of this number has another token.
fn name() -> [u8; NAME_BYTES] {
    static TOKEN: OnceLock<u128> = OnceLock::new();
    let token = TOKEN.get_or_init(|| u128::from_be_bytes(random()));
    let text = format!("{:010} {token:032x}\n", process::id());
    let mut name = [b' '; NAME_BYTES];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

fn says(lock: &File) -> Says {
    let mut said = [0; NAME_BYTES];
    match lock.read_exact_at(&mut said, 0) {
        Ok(()) if said == name() => Says::Us,
        Ok(()) => Says::Another,
        _ => Says::Nothing,
    }
}

/// That a directory is this process's.
#[derive(Debug)]
pub(super) struct Owned {
    // None on a file system that has no such locks.
    alive: Option<File>,
    process: u32,
    /// The lock on `lock` is not ours: it is inherited by a child of the previous owner.
    inherited: bool,
}

impl Owned {
    /// By the lock on `lock`, which this process has just taken. `None`: another process is faster.
    pub(super) fn by_lock(dir: &Path, lock: &File) -> Option<Owned> {
        let alive = mark(dir, lock, true).map_or_else(|_| Some(None), |alive| alive.map(Some))?;
        Some(Owned { alive, process: process::id(), inherited: false })
    }

    /// The lock on `lock` is taken, perhaps only by a child that was forked off a process that is gone.
    pub(super) fn inherited(dir: &Path, lock: &File) -> Option<Owned> {
        if says(lock) != Says::Another {
            return None;
        }
        let alive = mark(dir, lock, false).ok()??;
        Some(Owned { alive: Some(alive), process: process::id(), inherited: true })
    }

    /// Whatever children have open too.
    pub(super) fn let_go(&mut self, dir: &Path, lock: &File, is_named: bool) {
        // A forked child has a copy of this, and no right to it.
        if self.process != process::id() {
            return;
        }
        // Where another thread hangs in the middle of its turn, there is no waiting for it.
        let _turn = Turn::take();
        // In this order: a process that finds one of them gone can tell what became of the others.
        if let Some(alive) = self.alive.take() {
            let _ = lock.write_all_at(&NO_OWNER, 0);
            // Where the other lock stays taken, this file is all that the next one can tell by.
            if is_named && !self.inherited {
                let _ = fs::remove_file(dir.join(ALIVE));
            }
            drop(alive);
        }
        // Not only closed, as a child may have it open too.
        let _ = lock.unlock();
    }
}

/// Takes the process's own lock, and says so. `None`: another process has it.
fn mark(dir: &Path, lock: &File, may_make: bool) -> io::Result<Option<File>> {
    let path = dir.join(ALIVE);
    let mut options = OpenOptions::new();
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    options.read(true).write(true).create(may_make).truncate(false).mode(0o600).custom_flags(flags);
    let alive = options.open(&path)?;
    match fcntl_lock(&alive, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::AGAIN | Errno::ACCESS) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // Its previous owner may have let it go, and removed the file, after we opened it.
    let named = fs::symlink_metadata(&path)?;
    if !named.is_file() || !same_file(&named, &alive.metadata()?) {
        return Ok(None);
    }
    lock.write_all_at(&name(), 0)?;
    Ok(Some(alive))
}

/// To take a directory by this lock file. `None`: another thread takes longer over one.
pub(super) fn turn() -> Option<Turn> {
    Turn::take()
}

/// Returns whether the lock file says that the directory is this process's.
pub(super) fn is_ours(lock: &File) -> bool {
    says(lock) == Says::Us
}

/// While it lives, no other thread of this process takes a directory or lets one go.
#[derive(Debug)]
pub(super) struct Turn(());

// A mutex would stay locked for ever in a child that is forked off meanwhile. This holds the number of the process that
// took it: another one's number is no lock.
static TURN: AtomicU32 = AtomicU32::new(0);

/// What is done meanwhile takes a few calls of the system, which a busy disk may hold up for long. Where they hang, the next
/// thread gives up: less than a call of the spool may take, with two such turns in it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The thread that has the turn is mostly done with it by the time that others have run.
const YIELDS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

impl Turn {
    /// `None` where it does not come.
    fn take() -> Option<Turn> {
        let us = process::id();
        let (begun, mut tries) = (now(), 0_u32);
        loop {
            let before = TURN.load(Ordering::Relaxed);
            if before != us && TURN.compare_exchange(before, us, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return Some(Turn(()));
            }
            tries += 1;
            if tries < YIELDS {
                thread::yield_now();
            } else if begun.elapsed() < PATIENCE {
                thread::park_timeout(PAUSE);
            } else {
                return None;
            }
        }
    }
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "others hold up the thread in real time")]
    Instant::now()
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURN.store(0, Ordering::Release);
    }
}
