//! The sampler: a thread of its own that sees what no worker can, the future in `block_on` too, where that is observed.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::base::catch::logged;
use crate::base::threads;
use crate::shell::shared::Shared;

use crate::core::stalls::LONG_TASK;
use crate::shell::observe::polled_now;

/// How often the sampler looks: a poll of 60 ms is seen before it ends.
const PERIOD: Duration = Duration::from_millis(8);

/// Starts the thread; it ends when the probe does. Where no thread can be had, the probe sees what it sees, and the report
/// says so.
pub(crate) fn start(shared: &Arc<Shared>) {
    let sampling = Arc::clone(shared);
    // No thread can have a name with a zero in it.
    let name = format!("afterboot {}", shared.name).replace('\0', "\u{fffd}");
    if let Err(error) = thread::Builder::new().name(name).spawn(move || run(&sampling)) {
        shared.update(|state, now, effects| {
            state.no_sampler();
            state.thread_refused(threads::SAMPLER, now, effects);
        });
        logged(
            || tracing::warn!(target: "afterboot", governor = %shared.name, %error, "no thread for the sampler"),
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own, which samples real time")]
fn run(shared: &Arc<Shared>) {
    let governor = Arc::as_ptr(shared).addr();
    while shared.lock().keeps_sampler() {
        for current in polled_now().into_iter().filter(|current| current.governor == governor) {
            let now = shared.clock.now();
            if now.since(current.since) >= LONG_TASK {
                shared.judge(|core, _, _| core.saw_poll(current.since, now, current.worker, current.name));
            }
        }
        thread::sleep(PERIOD);
    }
}
