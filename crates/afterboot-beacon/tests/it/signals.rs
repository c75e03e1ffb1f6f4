//! A process that is asked to go sends its events first.

use std::io::{self, Read};
use std::process;
use std::thread;

use tokio::time::Instant;

use crate::child::{Order, Process, Role, say};
use crate::collector::{Mode, Server};
use crate::common::{Root, assert_clean, event, secs, until_arrived};

/// What the process does.
pub(crate) fn program(order: &Order, exits: bool) {
    // Whoever waits for it may be gone.
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(0);
    });
    let beacon = order.beacon();
    beacon.post("buffered", &event(&order.name, None));
    if exits {
        beacon.exit_on_signal(secs(5));
        // The command is obeyed in order, so that this answer says that the signal is listened to.
        beacon.checkpoint_blocking(secs(0));
        beacon.post("buffered", &event(&format!("{} late", order.name), None));
        say("ready");
        loop {
            thread::park();
        }
    }
    let coming = beacon.on_signal(secs(5));
    beacon.checkpoint_blocking(secs(0));
    beacon.post("buffered", &event(&format!("{} late", order.name), None));
    say("ready");
    let left = coming.wait_blocking().expect("a signal");
    say(&format!("acked {}", left.counters.acked));
    process::exit(left.signal.exit_code() + 100);
}

fn signalled(exits: bool, signal: &str) -> (Option<i32>, Vec<String>) {
    let server = Server::start(Mode::Ok);
    let root = Root::new();
    let order = Order {
        role: Role::Signal { exits },
        url: server.url(),
        root: root.path(),
        user: None,
        name: "signalled".to_owned(),
    };
    let child = Process::start(&order);
    child.expect("ready");
    let (code, said) = child.signal(signal);
    until_arrived(&server, &["signalled".to_owned(), "signalled late".to_owned()]);
    assert_clean(&server);
    assert_eq!(server.look(|ledger| ledger.ends.len()), 1, "the stream says that it is over");
    (code, said)
}

/// B16, B22: the hook for SIGTERM and ctrl-c.
#[test]
fn a_process_that_is_asked_to_go_sends_its_events_and_ends_with_the_signals_code() {
    assert_eq!(signalled(true, "-TERM").0, Some(143));
    assert_eq!(signalled(true, "-INT").0, Some(130));
}

#[test]
fn the_application_may_hear_of_the_signal_and_end_itself() {
    let (code, said) = signalled(false, "-TERM");
    assert_eq!(code, Some(243));
    assert!(said.iter().any(|line| line == "acked 2" || line == "acked 1"), "{said:?}");
}

pub(crate) fn impatient(order: &Order) {
    thread::spawn(|| {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        process::exit(0);
    });
    let beacon = order.beacon();
    let coming = beacon.on_signal(secs(10));
    beacon.checkpoint_blocking(secs(0));
    beacon.post("buffered", &event(&order.name, None)).urgent();
    say("ready");
    let left = coming.wait_blocking().expect("a signal");
    say(&format!("left spooled {}", left.counters.spooled));
    loop {
        thread::park();
    }
}

/// B16, B22: a second ctrl-c ends the budget, and what was not sent is on disk; once the beacon has left, a third one ends the
/// process as it does by default.
#[test]
fn a_second_signal_ends_the_budget_at_once_and_afterwards_the_default_is_back() {
    use std::os::unix::process::ExitStatusExt;

    for signal in ["-INT", "-TERM"] {
        let server = Server::start(Mode::Hung);
        let root = Root::new();
        let name = "impatient".to_owned();
        let order = Order { role: Role::Impatient, url: server.url(), root: root.path(), user: None, name };
        let child = Process::start(&order);
        child.expect("ready");
        child.tell_by(signal);
        // The first one only begins the budget of ten seconds.
        assert_eq!(child.next(secs(2)), None);
        let begun = Instant::now();
        child.tell_by(signal);
        assert_eq!(child.expect("left"), "spooled 1");
        assert!(begun.elapsed() < secs(5), "{:?}", begun.elapsed());
        child.tell_by(signal);
        let ended = child.ended();
        assert_eq!(ended.signal(), Some(if signal == "-INT" { 2 } else { 15 }), "{ended}");
    }
}
