//! A report as events: the arm, chunks of tasks, the end.

use std::time::Duration;

use afterboot::{MonkeyReport, Report, TaskReport};
use rand::RngExt;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use uuid::{Builder, Uuid};

/// Reports are worth something for longer than clicks: a fleet's analysis waits a week for those who were offline.
pub(crate) const REPORTS_ARE_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Half of a batch: two chunks fit into one, with room for its head.
pub(crate) const CHUNK: usize = 32 * 1024;

/// Names one boot, so that its parts find each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boot(Uuid);

/// What this boot was assigned.
#[derive(Debug, Serialize)]
pub(crate) struct Arm {
    boot: Uuid,
    /// None: nothing is delayed, which is the control arm.
    monkey: Option<MonkeyReport>,
    /// Who could have been picked.
    eligible: Vec<String>,
}

impl Arm {
    pub(crate) fn of(boot: &Boot, so_far: &Report) -> Arm {
        let waiting = so_far.tasks.iter().filter(|task| task.started.is_none());
        Arm {
            boot: boot.0,
            monkey: so_far.monkey.clone(),
            eligible: waiting.map(|task| task.name.clone()).collect(),
        }
    }
}

/// Some of the tasks.
#[derive(Debug, Serialize)]
pub(crate) struct Chunk {
    boot: Uuid,
    chunk: usize,
    tasks: Vec<Box<RawValue>>,
}

/// Everything but the tasks.
#[derive(Debug, Serialize)]
pub(crate) struct End {
    boot: Uuid,
    /// How many there were, so that a missing one is noticed.
    chunks: usize,
    report: Value,
}

impl Boot {
    pub(crate) fn new() -> Boot {
        Boot(Builder::from_random_bytes(rand::rng().random()).into_uuid())
    }

    /// The tasks, in order, in chunks of at most [`CHUNK`] bytes.
    pub(crate) fn chunks(&self, report: &Report) -> Result<Vec<Chunk>, serde_json::Error> {
        let empty = |chunk| Chunk { boot: self.0, chunk, tasks: Vec::new() };
        let mut chunks = vec![empty(0)];
        let mut size = 0;
        for task in &report.tasks {
            let task = encode(task)?;
            let room = CHUNK - encoded_len(&empty(usize::MAX))?;
            if size + task.get().len() + 1 > room && size > 0 {
                chunks.push(empty(chunks.len()));
                size = 0;
            }
            size += task.get().len() + 1;
            if let Some(chunk) = chunks.last_mut() {
                chunk.tasks.push(task);
            }
        }
        Ok(chunks)
    }

    pub(crate) fn end(&self, report: &Report, chunks: usize) -> Result<End, serde_json::Error> {
        let mut rest = report.clone();
        rest.tasks.clear();
        rest.late_tasks.clear();
        let mut report = serde_json::to_value(&rest)?;
        if let Some(report) = report.as_object_mut() {
            report.remove("tasks");
            report.remove("late_tasks");
        }
        Ok(End { boot: self.0, chunks, report })
    }
}

/// A task that alone is larger than a chunk leaves its segments at home.
fn encode(task: &TaskReport) -> Result<Box<RawValue>, serde_json::Error> {
    let whole = to_raw_value(task)?;
    if whole.get().len() < CHUNK / 2 {
        return Ok(whole);
    }
    let mut cut = task.clone();
    cut.segments.clear();
    to_raw_value(&cut)
}

fn encoded_len(value: &impl Serialize) -> Result<usize, serde_json::Error> {
    serde_json::to_vec(value).map(|encoded| encoded.len())
}

#[cfg(test)]
mod tests {
    use afterboot::{Governor, Task};

    use super::*;

    async fn report(tasks: usize) -> Report {
        let governor = Governor::builder().build().unwrap();
        for n in 0..tasks {
            governor.govern(Task::new(
                format!("task \"{n}\" of a long name, {}", "x".repeat(n % 90)),
                || async {},
            ));
        }
        governor.report().finished().await
    }

    #[tokio::test(start_paused = true)]
    async fn every_task_is_in_one_chunk_and_no_chunk_is_too_large() {
        let report = report(500).await;
        let chunks = Boot::new().chunks(&report).unwrap();
        assert!(chunks.len() > 2, "{}", chunks.len());
        let names: Vec<String> =
            chunks.iter().flat_map(|chunk| &chunk.tasks).map(|task| name(task)).collect();
        let expected: Vec<String> = report.tasks.iter().map(|task| task.name.clone()).collect();
        assert_eq!(names, expected);
        for chunk in &chunks {
            assert!(encoded_len(chunk).unwrap() <= CHUNK);
        }
    }

    fn name(task: &RawValue) -> String {
        let task: Value = serde_json::from_str(task.get()).unwrap();
        task["name"].as_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_boot_without_tasks_has_one_empty_chunk_and_its_end_says_so() {
        let report = report(0).await;
        let boot = Boot::new();
        let chunks = boot.chunks(&report).unwrap();
        assert_eq!((chunks.len(), chunks[0].tasks.len()), (1, 0));
        let end = serde_json::to_value(boot.end(&report, chunks.len()).unwrap()).unwrap();
        assert_eq!(end["chunks"], 1);
        assert_eq!(end["report"]["governor"], report.governor);
        assert!(end["report"].get("tasks").is_none());
    }
}
