//! What is about to be measured, and how: said before the first figure.

use crate::client;
use crate::figures::SLOW;
use crate::round::{self, Scene};
use crate::strategy::Strategy;

pub(crate) fn text(scene: &Scene<'_>, strategies: &[Strategy]) -> String {
    let Scene { options, corpus, window } = scene;
    let side_tasks = match options.synthetic {
        Some(block) => format!("side tasks: ten that hold a worker for 60 ms each, by {}", block.name()),
        None => format!(
            "corpus: {} crates that cargo compiled for this example, {} files, {} bytes\n\
             side tasks: {}",
            corpus.crates.len(),
            corpus.files.len(),
            corpus.bytes,
            wrapped(&scene.task_names(), "            "),
        ),
    };
    let names: Vec<_> = strategies.iter().map(|strategy| strategy.name()).collect();
    format!(
        "{side_tasks}\n\
         adapter: every strategy runs the same bodies; for all but the governed ones a small adapter catches\n\
         {sp:9}panics, skips what has a false condition and waits for a predecessor\n\
         client: open loop, {connections} keep-alive connections, a request each {every} ms to / and /search from\n\
         {sp:8}when the listener is up; latency from the scheduled send, of the requests due while a side\n\
         {sp:8}task has started and not finished (nothing: of all in the window)\n\
         over {slow} ms: counted in the first {window} ms, the same for all\n\
         order of a round: {first}, then {second}; in each:\n\
         {sp:18}{names}\n\
         rounds: {rounds}; of several, the medians",
        sp = "",
        connections = client::CONNECTIONS,
        every = client::EVERY.as_millis(),
        slow = SLOW.as_millis(),
        window = window.as_millis(),
        first = round::Flavor::BOTH[0],
        second = round::Flavor::BOTH[1],
        names = wrapped(&names, "                  "),
        rounds = options.rounds,
    )
}

/// Names as a list that fits the width, its further lines indented.
fn wrapped(names: &[&str], indent: &str) -> String {
    let lines: Vec<_> = names.chunks(7).map(|line| line.join(", ")).collect();
    lines.join(&format!(",\n{indent}"))
}
