//! The report as a Chrome trace, for Perfetto and chrome://tracing.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Report, TaskReport};
use crate::model::gate_state::GateState;

/// The process of the application's own rows, and that of the tasks' rows. Perfetto keeps 0 for itself.
const APPLICATION: u64 = 1;
const GOVERNED: u64 = 2;

impl Report {
    /// Returns the run in Chrome's trace format, as one JSON object for Perfetto or `chrome://tracing`.
    ///
    /// Times are in microseconds since `build()`. The application's rows show the long tasks, the held idle starts and
    /// the opening of the gate. Below, each task has a row with `wait` for its time in the queue and `run` for its
    /// execution, its polls if [`record_segments`](crate::Builder::record_segments) was set, and an arrow from each
    /// predecessor. A task that never started shows its outcome. A task that had not ended is shown up to the time of
    /// the report.
    pub fn to_chrome_trace(&self) -> String {
        let mut trace = Trace::default();
        trace.name(APPLICATION, None, "application");
        trace.name(GOVERNED, None, &format!("governor {}", self.governor));
        self.add_application(&mut trace);
        let rows: HashMap<u64, u64> = self.listed().map(|task| task.number).zip(trace.rows + 1..).collect();
        let by_number: HashMap<u64, &TaskReport> = self.listed().map(|task| (task.number, task)).collect();
        for task in self.listed() {
            let row = trace.add_row(GOVERNED, &task.name);
            self.add_task(&mut trace, task, row);
            for before in task.after.iter().filter_map(|number| by_number.get(number)) {
                trace.add_arrow((before, rows[&before.number]), (task, row));
            }
        }
        json!({
            "displayTimeUnit": "ms",
            "otherData": {
                "governor": self.governor,
                "profile": self.profile,
                "seed": self.seed.to_string(),
                "gate": self.gate.to_string(),
            },
            "traceEvents": trace.events,
        })
        .to_string()
    }

    fn add_application(&self, trace: &mut Trace) {
        let long_tasks = self.long_tasks.iter().map(|long| Slice {
            name: long.culprit(),
            category: "long task",
            start: long.start,
            end: long.start.saturating_add(long.length),
            args: json!({ "worker": long.worker }),
        });
        trace.add_packed("long tasks", long_tasks.collect());
        let holds = self.holds.iter().map(|hold| Slice {
            name: format!("{} held", hold.task),
            category: "hold",
            start: hold.since,
            end: hold.until,
            args: json!({ "by": hold.why.to_string() }),
        });
        trace.add_packed("held idle starts", holds.collect());
        if let GateState::Open { at, .. } = &self.gate {
            let row = trace.add_row(APPLICATION, "gate");
            let event = json!({ "name": "gate opens", "cat": "gate", "ph": "i", "s": "g", "ts": micros(*at),
                "pid": APPLICATION, "tid": row, "args": { "gate": self.gate.to_string() } });
            trace.events.push(event);
        }
    }

    fn add_task(&self, trace: &mut Trace, task: &TaskReport, row: u64) {
        let end = task.finished.unwrap_or(self.taken);
        let outcome = task.outcome.as_ref().map_or("not ended".to_owned(), ToString::to_string);
        if let Some(queued) = task.queued {
            let end = task.started.unwrap_or(end);
            let args =
                json!({ "queue": task.queue, "waited_for": task.waited_for, "demanded": task.demanded });
            trace.add(
                GOVERNED,
                row,
                &Slice { name: "wait".into(), category: "wait", start: queued, end, args },
            );
        }
        if let Some(start) = task.started {
            let args = json!({ "outcome": outcome, "polls": task.polls, "blocking": task.blocking,
                "longest_poll_us": micros(task.longest_poll), "awaited": task.awaited, "stuck": task.stuck });
            trace.add(GOVERNED, row, &Slice { name: "run".into(), category: "run", start, end, args });
        } else if let Some(at) = task.finished {
            let event = json!({ "name": outcome, "cat": "end", "ph": "i", "s": "t", "ts": micros(at),
                "pid": GOVERNED, "tid": row });
            trace.events.push(event);
        }
        for segment in &task.segments {
            let name =
                if segment.polls == 1 { "poll".to_owned() } else { format!("{} polls", segment.polls) };
            // Polls are measured in real time: under a paused clock they would reach beyond their run.
            let (start, end) = (segment.start, segment.start.saturating_add(segment.busy).min(end));
            let args = json!({ "polls": segment.polls });
            trace.add(GOVERNED, row, &Slice { name, category: "poll", start, end, args });
        }
    }
}

/// Something with a beginning and an end.
struct Slice {
    name: String,
    category: &'static str,
    start: Duration,
    end: Duration,
    args: Value,
}

#[derive(Default)]
struct Trace {
    events: Vec<Value>,
    rows: u64,
    arrows: u64,
}

impl Trace {
    fn name(&mut self, process: u64, row: Option<u64>, name: &str) {
        let what = if row.is_some() { "thread" } else { "process" };
        let order = row.unwrap_or(process);
        for (key, args) in [("name", json!({ "name": name })), ("sort_index", json!({ "sort_index": order }))]
        {
            self.events.push(json!({ "name": format!("{what}_{key}"), "ph": "M", "pid": process,
                "tid": row.unwrap_or(0), "args": args }));
        }
    }

    fn add_row(&mut self, process: u64, name: &str) -> u64 {
        self.rows += 1;
        self.name(process, Some(self.rows), name);
        self.rows
    }

    fn add(&mut self, process: u64, row: u64, slice: &Slice) {
        let length = slice.end.saturating_sub(slice.start);
        self.events.push(json!({ "name": slice.name, "cat": slice.category, "ph": "X",
            "ts": micros(slice.start), "dur": micros(length), "pid": process, "tid": row, "args": slice.args }));
    }

    /// Slices of one row must not overlap: as many rows as it takes.
    fn add_packed(&mut self, name: &str, mut slices: Vec<Slice>) {
        slices.sort_by_key(|slice| slice.start);
        let mut rows: Vec<(u64, Duration)> = Vec::new();
        for slice in slices {
            let place = match rows.iter().position(|(_, free)| *free <= slice.start) {
                Some(place) => place,
                None => {
                    rows.push((self.add_row(APPLICATION, name), Duration::ZERO));
                    rows.len() - 1
                }
            };
            rows[place].1 = slice.end;
            self.add(APPLICATION, rows[place].0, &slice);
        }
    }

    /// From the end of one run to the start of another. An arrow's end belongs to the slice that is open at its
    /// time, and at its very end a slice is open no more.
    fn add_arrow(&mut self, from: (&TaskReport, u64), to: (&TaskReport, u64)) {
        let (Some(begun), Some(end), Some(start)) = (from.0.started, from.0.finished, to.0.started) else {
            return;
        };
        let last = end.saturating_sub(Duration::from_nanos(1)).max(begun);
        self.arrows += 1;
        for (phase, at, row) in [("s", last, from.1), ("f", start, to.1)] {
            let mut event = json!({ "name": "after", "cat": "after", "ph": phase, "id": self.arrows,
                "ts": micros(at), "pid": GOVERNED, "tid": row });
            if phase == "f" {
                event["bp"] = json!("e");
            }
            self.events.push(event);
        }
    }
}

/// Chrome's unit.
fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
