//! What is about to be measured, and how: said before the first figure.

use crate::client::{CONNECTIONS, EVERY};
use crate::figures::SLOW;
use crate::round::{Flavor, Scene};
use crate::strategy::Strategy;
use crate::tasks::{Queue, SideTask, Work};

const WIDTH: usize = 100;

pub(crate) fn text(scene: &Scene<'_>, strategies: &[Strategy]) -> String {
    let corpus = &scene.corpus;
    let (tasks, expected) = scene.declared();
    let labels: Vec<_> = tasks.iter().map(|task| label(task, &tasks)).collect();
    let (source, side_tasks) = match scene.options.synthetic {
        Some(block) => (
            "of this example itself".to_owned(),
            format!("ten that hold a worker for 60 ms each, by {}", block.name()),
        ),
        None => (
            format!("{} crates that cargo compiled for this example", corpus.crates.len()),
            format!(
                "{}; {} complete, {} fails, {} panics",
                labels.join(", "),
                expected.completed,
                expected.failed,
                expected.panicked
            ),
        ),
    };
    let names: Vec<_> = strategies.iter().map(|strategy| strategy.name()).collect();
    let [first, second] = Flavor::BOTH;
    let paragraphs = [
        format!("corpus: {source}, {} files, {} bytes", corpus.files.len(), corpus.bytes),
        format!("side tasks: {side_tasks}"),
        "adapter: every strategy runs the same bodies; what the governor does for its tasks, one small \
         adapter does for the others: it catches panics, skips what has a false condition and waits for a \
         predecessor"
            .into(),
        format!(
            "client: open loop, {CONNECTIONS} keep-alive connections, a request each {} ms to / and /search \
             from when the listener is up; latency from the scheduled send, of the requests due while a side \
             task has started and not finished (nothing: of all in the window)",
            EVERY.as_millis()
        ),
        format!(
            "over {} ms: requests due in the first {} ms, the same for all",
            SLOW.as_millis(),
            scene.window.as_millis()
        ),
        format!("a round: on {first}, then on {second}: {}", names.join(", ")),
        format!("rounds: {}; of several, the medians", scene.options.rounds),
    ];
    paragraphs.iter().map(|paragraph| wrapped(paragraph)).collect::<Vec<_>>().join("\n")
}

fn label(task: &SideTask, tasks: &[SideTask]) -> String {
    let mut notes = Vec::new();
    notes.extend((task.queue == Queue::Idle).then(|| "idle".to_owned()));
    notes.extend((!task.when).then(|| "its condition is false".to_owned()));
    notes.extend(matches!(task.work, Work::Blocking(_)).then(|| "blocking".to_owned()));
    notes.extend(task.after.map(|place| format!("after {}", tasks[place].name)));
    match notes.is_empty() {
        true => task.name.to_owned(),
        false => format!("{} ({})", task.name, notes.join(", ")),
    }
}

/// Further lines are indented.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in paragraph.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            text.push_str("\n   ");
            column = 3;
        }
        if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paragraphs_are_wrapped_and_keep_every_word() {
        let paragraph = "a request each 2 ms ".repeat(20);
        let wrapped = wrapped(paragraph.trim());
        assert!(wrapped.lines().count() > 1 && wrapped.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(wrapped.split_whitespace().eq(paragraph.split_whitespace()));
    }
}
