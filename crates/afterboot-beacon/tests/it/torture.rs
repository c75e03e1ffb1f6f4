//! The torture example, small: whatever the server does, the client's ledger balances and agrees with the server's.

#[path = "../../examples/torture/run.rs"]
mod run;
#[path = "../../examples/torture/scene.rs"]
mod scene;

use std::thread;
use std::time::Duration;

use scene::{Room, Scene, Torture};

/// Runs all modes at the same time, each with a server of its own.
fn all_modes(events: u64, spool: bool, room: Room) -> Vec<String> {
    thread::scope(|scope| {
        let running: Vec<_> = Torture::ALL
            .into_iter()
            .map(|torture| scope.spawn(move || faults(&Scene { torture, events, spool, room })))
            .collect();
        running.into_iter().flat_map(|run| run.join().expect("a run does not panic")).collect()
    })
}

fn faults(scene: &Scene) -> Vec<String> {
    let name = scene.torture.name();
    let run::Outcome { counters, server, times, shutdown, faults } = run::run(scene);
    let mut faults: Vec<String> = faults.into_iter().map(|fault| format!("{name}: {fault}")).collect();
    if times.len() as u64 != scene.events {
        faults.push(format!("{name}: {} posts were timed", times.len()));
    }
    // The deadline is 5 s. A machine that does other things as well may be late with it.
    if shutdown > Duration::from_secs(8) {
        faults.push(format!("{name}: the shutdown took {shutdown:?}: {counters:?}, {}", server.summary()));
    }
    faults
}

#[test]
fn no_mode_of_a_server_makes_the_client_lose_count() {
    assert_eq!(all_modes(5_000, false, Room::Enough), [""; 0]);
}

#[test]
fn no_mode_of_a_server_makes_a_client_with_a_spool_lose_an_event() {
    assert_eq!(all_modes(5_000, true, Room::Enough), [""; 0]);
}

#[test]
fn what_does_not_fit_into_memory_is_counted() {
    for spool in [false, true] {
        let scene = Scene { torture: Torture::Hung, events: 30_000, spool, room: Room::Default };
        assert_eq!(faults(&scene), [""; 0]);
    }
}
