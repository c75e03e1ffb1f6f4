//! A wall clock that is wrong, and then set: with processes whose clock a library set before them changes.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use afterboot_beacon::wire::Counters;
use tempfile::TempDir;

use crate::child::{Order, Process, Role, durable, say};
use crate::collector::{Mode, Server};
use crate::common::{Root, assert_clean, balance, balanced, drained, event, secs, until, until_arrived};

/// What the process does whose clock is wrong: it posts, and goes on or leaves when it is told.
pub(crate) fn program(order: &Order) {
    let beacon = order.beacon();
    say(&format!("year {}", beacon_year()));
    for number in 0..40 {
        beacon.post("click", &event(&format!("click-{number}"), None));
    }
    for number in 0..5 {
        durable(&beacon, &format!("durable-{number}"), None);
    }
    say("posted");
    let mut line = String::new();
    let _ = io::stdin().read_line(&mut line);
    if line.trim() == "stay" {
        until("an empty beacon", || drained(&beacon));
    }
    let counters = balance(beacon.shutdown_blocking(secs(5)));
    say(&format!("left {}", serde_json::to_string(&counters).expect("JSON")));
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

fn since_1970() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the wall clock is what this is about")]
    let now = SystemTime::now();
    i64::try_from(now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).expect("a time of ours")
}

fn beacon_year() -> i64 {
    1970 + since_1970() / 31_556_952
}

/// A clock that processes may be started under.
struct Clock(TempDir, PathBuf);

impl Clock {
    /// None, said aloud, where there is no way to change a process's clock.
    fn new() -> Option<Clock> {
        let dir = tempfile::tempdir().expect("a folder");
        let (source, library) = (dir.path().join("shim.c"), dir.path().join("shim.so"));
        fs::write(&source, include_str!("clock/shim.c")).expect("room on the disk");
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).status();
        if !cfg!(target_os = "linux") || !built.is_ok_and(|status| status.success()) {
            #[expect(clippy::print_stderr, reason = "a test that could not be made")]
            {
                eprintln!("SKIPPED: a process's clock can be changed on Linux, with a C compiler `cc`");
            }
            return None;
        }
        Some(Clock(dir, library))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("off")
    }

    /// How many seconds it is off, from now on.
    fn set(&self, off: i64) {
        // In one step: a process reads it at any moment.
        let new = self.0.path().join("new");
        fs::write(&new, off.to_string()).expect("room on the disk");
        fs::rename(new, self.file()).expect("the same folder");
    }

    fn start(&self, server: &Server, root: &Root) -> Process {
        let order = Order {
            role: Role::Clock,
            url: server.url(),
            root: root.path(),
            user: None,
            name: String::new(),
        };
        let library: &Path = &self.1;
        Process::start_with(
            &order,
            &[("LD_PRELOAD", library.as_os_str()), ("AFTERBOOT_TEST_CLOCK", self.file().as_os_str())],
        )
    }
}

fn names() -> Vec<String> {
    let clicks = (0..40).map(|number| format!("click-{number}"));
    clicks.chain((0..5).map(|number| format!("durable-{number}"))).collect()
}

/// Two days behind, and never set since the machine started.
fn wrong_clocks() -> [i64; 2] {
    [-2 * 24 * 3600, -since_1970()]
}

/// B29: what waits in memory and on disk is as old as it is, whatever the wall clock says meanwhile.
#[test]
fn a_clock_that_is_set_while_events_wait_expires_none() {
    let Some(clock) = Clock::new() else { return };
    for off in wrong_clocks() {
        let (server, root) = (Server::start(Mode::Refuse), Root::new());
        clock.set(off);
        let mut process = clock.start(&server, &root);
        let year: i64 = process.expect("year").parse().expect("a number");
        assert!(off > -1_000_000 || year == 1970, "its clock is the wrong one: {year}");
        process.expect("posted");
        clock.set(0);
        server.set_mode(Mode::Ok);
        process.tell("stay");
        let left: Counters = serde_json::from_str(&process.expect("left")).expect("counters");
        process.finish();
        assert_eq!((left.acked, left.dropped_in_all()), (45, 0), "off by {off} s: {left:?}");
        until_arrived(&server, &names());
        assert_clean(&server);
    }
}

/// B29: and so is what another process finds.
#[test]
fn rows_that_were_written_under_a_wrong_clock_are_adopted() {
    let Some(clock) = Clock::new() else { return };
    for off in wrong_clocks() {
        let (server, root) = (Server::start(Mode::Refuse), Root::new());
        clock.set(off);
        let mut process = clock.start(&server, &root);
        process.expect("posted");
        process.tell("leave");
        let left: Counters = serde_json::from_str(&process.expect("left")).expect("counters");
        process.finish();
        assert_eq!(left.spooled, 45, "{left:?}");
        server.set_mode(Mode::Ok);
        let heir = root.beacon(&server).build().expect("a beacon");
        until("its events", || balanced(&heir).adopted > 0);
        until("an empty spool", || drained(&heir));
        let counters = balance(heir.shutdown_blocking(secs(5)));
        assert_eq!((counters.acked, counters.dropped_in_all()), (45, 0), "off by {off} s: {counters:?}");
        until_arrived(&server, &names());
        assert_clean(&server);
    }
}
