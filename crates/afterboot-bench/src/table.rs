//! Tables in Markdown, to be pasted.

use std::fmt::Write;

use crate::args::{Args, Mode};
use crate::parent::{BOUND, Measured};
use crate::saving::Case;

pub(crate) fn of_clients(measured: &[Measured], args: &Args) -> String {
    let rate = args.rate.map_or("as fast as it takes them".to_owned(), |rate| format!("{rate} a second"));
    let mode = args.mode.as_str();
    let mut out = format!("{} events posted, {rate}; mode {mode}\n\n", args.events);
    let arrived = match args.mode {
        Mode::Ok => "arrived",
        Mode::Hung => "read, unanswered",
    };
    let heads = [
        "client",
        "enqueue p50",
        "p99",
        "enqueued a second",
        "heap when idle",
        "heap an event queued",
        "peak RSS",
        arrived,
        "requests",
        "wire bytes an event",
        "flush + shutdown",
        "CPU an event",
        "what the caller is told",
    ];
    line(&mut out, &heads.map(str::to_owned));
    let rules: Vec<String> =
        (0..heads.len()).map(|at| if at == 0 { "---" } else { "--:" }.to_owned()).collect();
    line(&mut out, &rules);
    for row in measured {
        line(&mut out, &cells(row));
    }
    out.push('\n');
    for row in measured {
        let _ = writeln!(out, "- `{}`: {}", row.client, row.settings);
    }
    out
}

fn cells(row: &Measured) -> Vec<String> {
    let absent = || "-".to_owned();
    let enqueued = row.enqueued.as_ref();
    let finished = row.finished.as_ref();
    let heap = row.heap.as_ref();
    let arrived = &row.arrived;
    let late = format!("did not return within {} s", BOUND.as_secs());
    let wire = arrived.head_bytes + arrived.body_bytes;
    let mut requests = grouped(arrived.requests);
    if arrived.unreadable > 0 {
        let _ = write!(requests, " ({} unreadable)", arrived.unreadable);
    }
    vec![
        row.client.to_owned(),
        enqueued.map_or_else(|| "blocked".to_owned(), |it| time(f64::from(it.p50_ns))),
        enqueued.map_or_else(absent, |it| time(f64::from(it.p99_ns))),
        enqueued.map_or_else(absent, |it| grouped(it.per_second as u64)),
        heap.map_or_else(absent, |it| format!("{:.0} KiB", it.idle as f64 / 1024.0)),
        heap.map_or_else(absent, |it| format!("{:.0} B", it.per_event)),
        finished.map_or_else(absent, |it| format!("{:.0} MiB", it.peak_kib as f64 / 1024.0)),
        if row.sends {
            format!("{} of {}", grouped(arrived.events), grouped(row.posted.into()))
        } else {
            absent()
        },
        requests,
        if arrived.events == 0 { absent() } else { format!("{:.1}", wire as f64 / arrived.events as f64) },
        finished.map_or(late, |it| time(it.seconds * 1e9)),
        finished.map_or_else(absent, |it| time(it.cpu_seconds * 1e9 / f64::from(row.posted))),
        finished.map_or_else(absent, |it| it.told.clone()),
    ]
}

pub(crate) fn of_saving(cases: &[Case]) -> String {
    let mut out = String::new();
    let heads = ["events", "sent", "requests", "body bytes", "header bytes", "wake-ups", "CPU", "took"];
    line(&mut out, &heads.map(str::to_owned));
    line(&mut out, &["---", "---", "--:", "--:", "--:", "--:", "--:", "--:"].map(str::to_owned));
    for case in cases {
        line(
            &mut out,
            &[
                case.pace.to_owned(),
                case.sends.to_owned(),
                grouped(case.arrived.requests),
                grouped(case.arrived.body_bytes),
                grouped(case.arrived.head_bytes),
                grouped(case.saved.wakeups),
                time(case.saved.cpu_seconds * 1e9),
                time(case.saved.seconds * 1e9),
            ],
        );
    }
    out
}

fn line(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n if n < 1e9 => format!("{:.1} ms", n / 1e6),
        n => format!("{:.1} s", n / 1e9),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
