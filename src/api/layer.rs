//! A `tracing` layer that attributes long tasks to the application's spans. Feature `tracing-layer`.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Weak};

use tokio::task;
use tracing::span::Id;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::api::governor::Governor;
use crate::shell::shared::Shared;

use crate::shell::context::another_is_polled;
use crate::shell::observe::Span;

/// Attributes long tasks to the spans that were entered at the time. Returned by [`Governor::tracing_layer`].
///
/// A long task is attributed to the innermost span that accounts for at least half of it and occupied the worker
/// throughout. A span that was still entered when another task was polled on its thread (its guard was kept across an
/// await) is ignored, as are afterboot's own spans: governed polls are attributed anyway. Costs two clock readings each
/// time a span is entered.
#[must_use = "a layer does nothing until a subscriber has it"]
pub struct ObserveLayer {
    shared: Weak<Shared>,
}

thread_local! {
    /// The spans entered on this thread, innermost last.
    static ENTERED: RefCell<Vec<(u64, Option<task::Id>, Span)>> = const { RefCell::new(Vec::new()) };
}

impl Governor {
    /// Returns a layer for a `tracing` subscriber that attributes long tasks to the application's spans. Feature
    /// `tracing-layer`.
    pub fn tracing_layer(&self) -> ObserveLayer {
        ObserveLayer { shared: Arc::downgrade(&self.shared) }
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "afterboot"
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for ObserveLayer {
    fn on_enter(&self, id: &Id, cx: Context<'_, S>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let Some(metadata) = cx.metadata(id).filter(|metadata| !is_ours(metadata)) else { return };
        let task = task::try_id();
        if ENTERED.with_borrow(|entered| entered.last().is_some_and(|(_, last, _)| *last != task)) {
            another_is_polled();
        }
        let span = Span::entered(shared, metadata.name().into());
        ENTERED.with_borrow_mut(|entered| entered.push((id.into_u64(), task, span)));
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        // Taken out before it is dropped: telling the governor may log, and so come back here.
        let left = ENTERED.with_borrow_mut(|entered| {
            let place = entered.iter().rposition(|(known, ..)| *known == id.into_u64())?;
            Some(entered.remove(place))
        });
        drop(left);
    }
}

impl fmt::Debug for ObserveLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObserveLayer").finish_non_exhaustive()
    }
}
