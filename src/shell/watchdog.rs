//! The watchdog: on a multi_thread runtime it replaces a lane whose poll is stuck.

use std::sync::Arc;

use tokio::time::timeout;

use crate::base::catch::logged;
use crate::base::threads;
use crate::core::Actions;
use crate::shell::lane;
use crate::shell::shared::Shared;
use crate::shell::state::Effects;

/// How often the watchdog looks in the time that a poll may last.
const LOOKS: u32 = 4;

/// The second guard. While the lane is inside a poll, its own guard is not dropped with the runtime; this one
/// is, and resolves what is left.
pub(crate) struct Guard {
    shared: Arc<Shared>,
    over: bool,
}

impl Guard {
    pub(crate) fn new(shared: Arc<Shared>) -> Guard {
        Guard { shared, over: false }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.over {
            lane::runtime_is_gone(&self.shared);
        }
    }
}

/// The body of the watchdog's task; it ends with the lane.
pub(crate) async fn watch(mut guard: Guard) {
    let shared = Arc::clone(&guard.shared);
    loop {
        // Made before the look, so that a lane that ends meanwhile is not missed.
        let ended = shared.lane_ended.wait();
        if !look(&shared) {
            guard.over = true;
            return;
        }
        // Whether the lane ended or the time is over, the next look will see.
        drop(timeout(shared.stuck_after / LOOKS, ended).await);
    }
}

/// False where no lane is left to watch.
fn look(shared: &Arc<Shared>) -> bool {
    let mut actions = Actions::default();
    let mut effects = Effects::default();
    let (stuck, asks_again, goes_on) = {
        let mut state = shared.lock();
        let now = shared.clock.now_inside();
        shared.hear_witness(&mut state);
        let stuck = state.take_over(shared.stuck_after, now, &mut actions, &mut effects);
        state.apply_actions(now, &shared.ready, &mut actions, &mut effects);
        (stuck, state.asks_again(), state.wants_watchdog())
    };
    if let Some((task, lasted)) = stuck {
        logged(|| {
            tracing::warn!(
                target: "afterboot",
                governor = %shared.name,
                %task,
                ?lasted,
                "a poll blocks the lane; another lane continues without it"
            );
        });
    }
    shared.perform(&mut effects);
    if asks_again && threads::ask_again(&shared.runtime) {
        shared.lock().has_a_thread();
    }
    goes_on
}
