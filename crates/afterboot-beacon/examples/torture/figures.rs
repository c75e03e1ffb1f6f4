//! What is printed.

use serde::Serialize;

use crate::run::Outcome;

/// Where the events are, by both ledgers.
#[derive(Serialize)]
pub(crate) struct Places {
    pub(crate) posted: u64,
    pub(crate) acked: u64,
    pub(crate) rejected: u64,
    pub(crate) dropped: u64,
    pub(crate) merged: u64,
    pub(crate) spooled: u64,
    pub(crate) dead: u64,
    pub(crate) queued: u64,
    pub(crate) server_unique: u64,
    pub(crate) server_duplicates: u64,
}

impl Places {
    pub(crate) fn of(outcome: &Outcome) -> Places {
        let counters = &outcome.counters;
        Places {
            posted: counters.posted,
            acked: counters.acked,
            rejected: counters.rejected,
            dropped: counters.dropped_in_all(),
            merged: counters.merged,
            spooled: counters.spooled,
            dead: counters.dead,
            queued: counters.queued + counters.in_flight,
            server_unique: outcome.server.accepted.len() as u64,
            server_duplicates: outcome.server.duplicates,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) mode: &'static str,
    #[serde(flatten)]
    pub(crate) places: Places,
    pub(crate) p50_ns: f64,
    pub(crate) p99_ns: f64,
    pub(crate) floor_p50_ns: f64,
    /// In its queue, which keeps nothing beside its lines.
    #[serde(skip)]
    pub(crate) floor_bytes: f64,
    pub(crate) bytes_per_event: f64,
    pub(crate) shutdown_ms: f64,
    pub(crate) max_rss_mb: f64,
    pub(crate) default_limits: Places,
}

impl Figures {
    pub(crate) fn table(&self) -> String {
        let rows = |places: &Places| {
            [
                ("posted", places.posted),
                ("acked", places.acked),
                ("rejected", places.rejected),
                ("dropped", places.dropped),
                ("merged", places.merged),
                ("spooled", places.spooled),
                ("dead", places.dead),
                ("queued", places.queued),
                ("server: unique", places.server_unique),
                ("server: duplicates", places.server_duplicates),
            ]
        };
        let mut table = format!("mode {:<19} {:>14} {:>14}\n", self.mode, "room for all", "default limits");
        for ((name, enough), (_, default)) in rows(&self.places).into_iter().zip(rows(&self.default_limits)) {
            table += &format!("{name:<24} {enough:>14} {default:>14}\n");
        }
        let figures = [
            ("a post, p50", self.p50_ns, "ns"),
            ("a post, p99", self.p99_ns, "ns"),
            ("the floor, p50", self.floor_p50_ns, "ns"),
            ("heap an event queued", self.bytes_per_event, "B"),
            ("the floor's line", self.floor_bytes, "B"),
            ("shutdown", self.shutdown_ms, "ms"),
            ("most memory", self.max_rss_mb, "MB"),
        ];
        for (name, figure, unit) in figures {
            table += &format!("{name:<24} {figure:>14.1} {unit}\n");
        }
        table
    }
}

/// In a sentence.
pub(crate) fn verdict(faults: &[String]) -> String {
    if faults.is_empty() {
        return "The ledger balances and agrees with the server's; no request broke the contract.".to_owned();
    }
    format!("FAILED: {}", faults.join("; "))
}
