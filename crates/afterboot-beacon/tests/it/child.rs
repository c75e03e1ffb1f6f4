//! A process of its own, to be killed: this test binary once more, told by a variable what to do.
//!
//! It says what happens in lines that begin with `@ `, and goes when its standard input ends, so that it never outlives
//! the test that started it.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{self, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use afterboot_beacon::{Beacon, BeaconBuilder, Durability, SpoolOptions};
use serde::{Deserialize, Serialize};

use crate::common::{LONG, event, secs};

const ORDER: &str = "AFTERBOOT_BEACON_TEST_CHILD";
const PROGRAM: &str = "child::does_nothing_without_an_order";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Posts durable events by several threads, as many each, and says which ones have their receipts.
    Write { threads: u64, events: u64 },
    /// Posts durable events and says which ones have their receipts, which come when they are synced, or before.
    Power { events: u64, synced: bool },
    /// Posts a durable event for each line that it reads, by that name, and says whether it has its receipt.
    Obey,
    /// Posts one durable event, and leaves by `process::exit` when it has its receipt.
    Exit,
    /// Waits for a line, opens a beacon and sends what it finds; leaves in good order at the end of its input.
    Deliver,
    /// Posts one event, then waits for a signal: by the hook that ends the process, or by the one that answers.
    #[cfg(unix)]
    Signal { exits: bool },
    /// Posts one event to a server that hangs, leaves by a signal within ten seconds, says so, and goes on.
    #[cfg(unix)]
    Impatient,
    /// Posts durable events as "a", then as "b", then as nobody, all from one thread.
    Users { events: u64 },
    /// Posts under a clock that is wrong.
    Clock,
    /// Forks while other threads post.
    #[cfg(unix)]
    Fork { forks: u64 },
    /// Forks; the child drops its handle and has posted nothing.
    #[cfg(unix)]
    ForkIdle,
    /// Posts durable events and forks. The child does nothing until it hears a line, then posts and leaves in good order.
    /// Its parent leaves before it, or is there to be killed.
    #[cfg(unix)]
    ForkHeld { events: u64, leaves: bool },
    /// Forks with an event in a queue from before there is a beacon; both then build one.
    #[cfg(unix)]
    ForkEarly,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) role: Role,
    pub(crate) url: String,
    pub(crate) root: PathBuf,
    pub(crate) user: Option<String>,
    /// What the names of its events begin with.
    pub(crate) name: String,
}

impl Order {
    pub(crate) fn beacon(&self) -> Beacon {
        self.builder().build().expect("a beacon")
    }

    fn builder(&self) -> BeaconBuilder {
        let builder = Beacon::builder("shop").endpoint(&self.url).session("s1").replay_spread(Duration::ZERO);
        let builder = builder.spool(SpoolOptions::new(&self.root)).batch_events(10);
        match &self.user {
            Some(user) => builder.user(user),
            None => builder,
        }
    }
}

/// One system call a line, so that a killed process leaves no half of it.
pub(crate) fn say(line: &str) {
    let _ = io::stdout().lock().write_all(format!("\n@ {line}\n").as_bytes());
}

#[test]
fn does_nothing_without_an_order() {
    let Ok(order) = env::var(ORDER) else { return };
    let order: Order = serde_json::from_str(&order).expect("an order");
    match &order.role {
        Role::Write { threads, events } => write(&order, *threads, *events),
        Role::Power { events, synced } => write_synced(&order, *events, *synced),
        Role::Obey => {
            let beacon = order.beacon();
            for name in io::stdin().lines() {
                let name = name.expect("a line");
                let receipt = beacon.post("durable", &event(&name, order.user.as_deref())).urgent().durable();
                match receipt.wait_blocking(LONG) {
                    Ok(()) => say(&format!("ok {name}")),
                    Err(why) => say(&format!("no {name}: {why}, {:?}", beacon.health().spool)),
                }
            }
        }
        Role::Exit => {
            let beacon = order.beacon();
            beacon.post("buffered", &event("lost or not", None));
            durable(&beacon, &order.name, order.user.as_deref());
            process::exit(0);
        }
        Role::Deliver => deliver(&order),
        #[cfg(unix)]
        Role::Impatient => crate::signals::impatient(&order),
        #[cfg(unix)]
        Role::Signal { exits } => crate::signals::program(&order, *exits),
        Role::Users { events } => users(&order, *events),
        Role::Clock => crate::clock::program(&order),
        #[cfg(unix)]
        Role::Fork { forks } => crate::fork::program(&order, *forks),
        #[cfg(unix)]
        Role::ForkIdle => crate::fork::idle_program(&order),
        #[cfg(unix)]
        Role::ForkHeld { events, leaves } => crate::fork::held_program(&order, *events, *leaves),
        #[cfg(unix)]
        Role::ForkEarly => crate::fork::early_program(&order),
    }
    process::exit(0);
}

/// Posts and says so once it is on disk.
pub(crate) fn durable(beacon: &Beacon, name: &str, user: Option<&str>) {
    let receipt = beacon.post("durable", &event(name, user)).urgent().durable();
    if receipt.wait_blocking(LONG).is_ok() {
        say(&format!("ok {name}"));
    }
}

fn write(order: &Order, threads: u64, events: u64) {
    let beacon = order.beacon();
    say(&format!("stream {}", beacon.stream()));
    thread::scope(|scope| {
        for thread in 0..threads {
            let beacon = &beacon;
            scope.spawn(move || {
                for number in 0..events {
                    let name = format!("{}-{thread}-{number}", order.name);
                    durable(beacon, &name, order.user.as_deref());
                    if number % 3 == 0 {
                        beacon.post("buffered", &event(&format!("{name} buffered"), order.user.as_deref()));
                    }
                }
            });
        }
        // Whoever kills it does so here; if that one is gone, there is nothing to do.
        scope.spawn(|| {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            process::exit(0);
        });
    });
}

fn write_synced(order: &Order, events: u64, synced: bool) {
    let durability = if synced { Durability::Power } else { Durability::Process };
    let beacon = order.builder().durability(durability).build().expect("a beacon");
    for number in 0..events {
        durable(&beacon, &format!("{}-{number}", order.name), order.user.as_deref());
    }
}

fn deliver(order: &Order) {
    let mut line = String::new();
    say("ready");
    let _ = io::stdin().lock().read_line(&mut line);
    let beacon = order.beacon();
    say(&format!("stream {}", beacon.stream()));
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let counters = beacon.shutdown_blocking(secs(5));
    say(&format!("left {}", serde_json::to_string(&counters).expect("JSON")));
}

fn users(order: &Order, events: u64) {
    let beacon = order.beacon();
    for user in [Some("a"), Some("b"), None] {
        beacon.set_user(user);
        for number in 0..events {
            durable(&beacon, &format!("{}-{}-{number}", order.name, user.unwrap_or("nobody")), user);
        }
    }
    say("done");
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// A running child. It is killed when this is dropped.
pub(crate) struct Process {
    child: process::Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(order: &Order) -> Process {
        Process::start_with(order, &[])
    }

    /// With these variables in its environment.
    pub(crate) fn start_with(order: &Order, variables: &[(&str, &OsStr)]) -> Process {
        let program = env::current_exe().expect("this program's path");
        let mut command = Command::new(program);
        command.args(["--exact", PROGRAM, "--nocapture", "--test-threads=1"]);
        command.envs(variables.iter().copied());
        command.env(ORDER, serde_json::to_string(order).expect("JSON"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a child process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if let Some(said) = line.strip_prefix("@ ") {
                    let _ = sender.send(said.to_owned());
                }
            }
        });
        Process { input: child.stdin.take(), child, lines }
    }

    pub(crate) fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input is open");
        input.write_all(format!("{line}\n").as_bytes()).expect("it listens");
    }

    /// Its next line; none after this time or where there will not be one.
    pub(crate) fn next(&self, limit: Duration) -> Option<String> {
        self.lines.recv_timeout(limit).ok()
    }

    /// Its next line of this kind, without the word that says so.
    pub(crate) fn expect(&self, kind: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|error| panic!("the child never said {kind}: {error}"));
            if line == kind {
                return String::new();
            }
            if let Some(rest) = line.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) {
                return rest.to_owned();
            }
        }
    }

    /// SIGKILL. What it had said until then, and not been asked for.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("a child that runs");
        self.rest()
    }

    /// SIGKILL for it alone: a child that it has forked off goes on, and says and hears what it would have.
    #[cfg(unix)]
    pub(crate) fn kill_alone(&mut self) {
        self.child.kill().expect("a child that runs");
        self.child.wait().expect("its end");
    }

    /// Closes its input, and waits until nobody is left to say anything.
    #[cfg(unix)]
    pub(crate) fn end(mut self) -> Vec<String> {
        self.input = None;
        self.rest()
    }

    /// Sends it a signal, and waits for its end: its code, and what it said.
    #[cfg(unix)]
    pub(crate) fn signal(mut self, signal: &str) -> (Option<i32>, Vec<String>) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        let said = self.rest();
        (self.child.wait().expect("its end").code(), said)
    }

    /// Sends it a signal.
    #[cfg(unix)]
    pub(crate) fn tell_by(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    /// Waits for its end.
    #[cfg(unix)]
    pub(crate) fn ended(mut self) -> process::ExitStatus {
        self.rest();
        self.child.wait().expect("its end")
    }

    /// It runs no more until it is killed.
    #[cfg(unix)]
    pub(crate) fn pause(&self) {
        let sent = Command::new("kill").args(["-STOP", &self.child.id().to_string()]).status().expect("kill");
        assert!(sent.success());
    }

    /// Closes its input and waits for its end.
    pub(crate) fn finish(mut self) -> Vec<String> {
        self.input = None;
        let said = self.rest();
        let status = self.child.wait().expect("its end");
        assert!(status.success(), "{status}, it said {said:?}");
        said
    }

    fn rest(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(LONG) {
                Ok(line) => said.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the child does not end, it said {said:?}"),
            }
        }
        self.child.wait().expect("its end");
        said
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names in lines that say `ok`.
pub(crate) fn acked(lines: &[String]) -> Vec<String> {
    lines.iter().filter_map(|line| line.strip_prefix("ok ")).map(str::to_owned).collect()
}
