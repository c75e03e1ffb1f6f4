//! The probe: one task that detects blocked workers. It runs only while an idle task waits for the gate.

use std::sync::Arc;

use tokio::time::timeout_at;

use crate::core::stalls::{PROBE_LATE, PROBE_PERIOD};
use crate::shell::context::another_is_polled;
use crate::shell::shared::Shared;

/// The body of the probe's task.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let mut last = shared.clock.now_inside();
    let mut workers = shared.workers.clone().map(|workers| workers.watch(shared.clock.instant(last)));
    loop {
        let regular = shared.clock.instant(last.after(PROBE_PERIOD));
        let sooner = workers.as_ref().and_then(|workers| workers.look_again(shared.clock.instant(last)));
        let planned = sooner.map_or(regular, |at| at.min(regular));
        // Made before the look, so that the end of the need is not missed.
        let over = shared.probe_over.wait();
        if shared.lock().retire_probe() {
            return;
        }
        if timeout_at(planned, over).await.is_ok() {
            continue;
        }
        another_is_polled();
        let now = shared.clock.now_inside();
        let planned = shared.clock.stamp(planned);
        let gaps = workers.as_mut().map_or(Vec::new(), |workers| workers.look(shared.clock.instant(now)));
        shared.judge(|core, _, actions| {
            if now.since(planned) >= PROBE_LATE {
                core.saw_stall(planned, now, None);
            }
            for gap in gaps {
                let end = gap.end.map_or(now, |end| shared.clock.stamp(end.into()));
                core.saw_stall(shared.clock.stamp(gap.start.into()), end, Some(gap.worker));
            }
            core.probe_tick(now, actions);
        });
        last = now;
    }
}
