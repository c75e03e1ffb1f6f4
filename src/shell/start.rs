//! Starts the tasks and threads of a governor.

use std::sync::Arc;

use crate::shell::shared::Shared;
use crate::shell::state::Start;
use crate::shell::{lane, probe, sampler, signal_tasks, watchdog};

/// What [`Shared`] is given to start things by.
pub(crate) fn start(shared: &Arc<Shared>, wanted: Start) {
    match wanted {
        Start::Signals(signals) => signal_tasks::spawn(signals, shared),
        Start::Lane(number, place) => lane::spawn(shared, number, place),
        Start::Watchdog => {
            shared.runtime.spawn(watchdog::watch(watchdog::Guard::new(Arc::clone(shared))));
        }
        Start::Probe => {
            shared.runtime.spawn(probe::watch(Arc::clone(shared)));
            if shared.samples && shared.lock().start_sampler() {
                sampler::start(shared);
            }
        }
    }
}
