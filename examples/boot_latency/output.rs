//! Figures as text: the table for people, JSON lines for programs.

use std::fmt::Write;

use crate::figures::Figures;
use crate::round::Flavor;
use crate::strategy::Strategy;
use crate::tasks::Block;

/// The medians of one strategy on one runtime.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) flavor: Flavor,
    pub(crate) strategy: Strategy,
    pub(crate) figures: Figures,
}

pub(crate) fn find(rows: &[Row], flavor: Flavor, strategy: Strategy) -> Option<&Figures> {
    rows.iter().find(|row| row.flavor == flavor && row.strategy == strategy).map(|row| &row.figures)
}

/// The rows of one runtime, in the order of a round.
pub(crate) fn table(rows: &[Row], flavor: Flavor) -> String {
    let mut text = format!(
        "{:16}{:>28}{:>9}{:>9}{:>18}{:>18}\n{:16}{:>9}{:>9}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n",
        flavor.to_string(),
        "-- latency, ms --",
        "over",
        "longest",
        "-- finish, ms --",
        "-- x governed --",
        "strategy",
        "p50",
        "p99",
        "max",
        "50 ms",
        "poll, ms",
        "normal",
        "idle",
        "p99",
        "finish",
    );
    let governed = find(rows, flavor, Strategy::Governed);
    for Row { strategy, figures: f, .. } in rows.iter().filter(|row| row.flavor == flavor) {
        let _ = writeln!(
            text,
            "{:16}{:>9}{:>9}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
            strategy.name(),
            number(f.p50_ms, 2),
            number(f.p99_ms, 2),
            number(f.max_ms, 2),
            f.over_50ms.round(),
            number(f.longest_poll_ms, 1),
            number(f.boot_ms, 0),
            number(f.idle_finish_ms, 0),
            number(ratio(f.p99_ms, governed.and_then(|g| g.p99_ms)), 2),
            number(ratio(f.boot_ms, governed.and_then(|g| g.boot_ms)), 2),
        );
    }
    text
}

pub(crate) fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    Some(part? / whole.filter(|whole| *whole > 0.0)?)
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
}

/// One object on one line, its keys in a fixed order.
pub(crate) fn json(row: &Row, synthetic: Option<Block>, rounds: usize) -> String {
    let f = &row.figures;
    let block = synthetic.map_or("real", Block::name);
    let ms = |value: Option<f64>| value.map_or_else(|| "null".into(), |ms| format!("{ms:.3}"));
    format!(
        "{{\"runtime\":\"{}\",\"strategy\":\"{}\",\"block\":\"{block}\",\"p50_ms\":{},\"p99_ms\":{},\
         \"max_ms\":{},\"over_50ms\":{},\"longest_poll_ms\":{},\"boot_ms\":{},\"idle_start_ms\":{},\"tasks\":{},\
         \"requests\":{},\"rounds\":{rounds}}}",
        row.flavor.name(),
        row.strategy.name(),
        ms(f.p50_ms),
        ms(f.p99_ms),
        ms(f.max_ms),
        f.over_50ms.round(),
        ms(f.longest_poll_ms),
        ms(f.boot_ms),
        ms(f.idle_start_ms),
        f.tasks,
        f.requests,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(strategy: Strategy, p99: f64) -> Row {
        let figures = Figures {
            p50_ms: Some(30_123.456),
            p99_ms: Some(p99),
            max_ms: Some(60_123.456),
            over_50ms: 300.0,
            longest_poll_ms: Some(60.06),
            boot_ms: Some(602.5),
            idle_start_ms: None,
            idle_finish_ms: None,
            tasks: 10,
            requests: 2700,
        };
        Row { flavor: Flavor::MultiThread, strategy, figures }
    }

    #[test]
    fn every_line_of_the_table_fits_into_100_columns() {
        let rows = [row(Strategy::SpawnBlocking, 60_000.0), row(Strategy::Governed, 60.0)];
        for line in table(&rows, Flavor::MultiThread).lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }

    #[test]
    fn ratios_are_to_the_governed_row_of_the_same_runtime() {
        let rows = [row(Strategy::SpawnAll, 600.0), row(Strategy::Governed, 60.0)];
        let table = table(&rows, Flavor::MultiThread);
        let spawn_all = table.lines().find(|line| line.starts_with("spawn_all")).expect("its row");
        assert!(spawn_all.ends_with("10.00     1.00"), "{spawn_all}");
    }

    #[test]
    fn a_json_line_is_an_object_with_every_key_and_null_for_what_was_not_measured() {
        let line = json(&row(Strategy::Governed, 60.5), Some(Block::Sleep), 9);
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let keys = [
            "runtime",
            "strategy",
            "block",
            "p50_ms",
            "p99_ms",
            "max_ms",
            "over_50ms",
            "longest_poll_ms",
            "boot_ms",
            "idle_start_ms",
            "tasks",
            "requests",
            "rounds",
        ];
        assert_eq!(value.as_object().expect("an object").len(), keys.len());
        assert!(keys.iter().all(|key| value.get(key).is_some()), "{line}");
        assert_eq!((&value["runtime"], &value["p99_ms"]), (&"multi_thread".into(), &60.5.into()));
        assert!(value["idle_start_ms"].is_null());
    }
}
