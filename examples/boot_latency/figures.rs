//! From answers to figures: quantiles of one run, medians over rounds.

use std::time::Duration;

use crate::client::Answer;
use crate::clock::millis;
use crate::ledger::Ledger;
use crate::tasks::Queue;

/// A request that took longer than this was felt.
pub(crate) const SLOW: Duration = Duration::from_millis(50);

/// The figures of one run, or the medians of several. `None`: there was nothing to measure.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    pub(crate) over_50ms: f64,
    pub(crate) longest_poll_ms: Option<f64>,
    pub(crate) boot_ms: Option<f64>,
    pub(crate) idle_start_ms: Option<f64>,
    pub(crate) idle_finish_ms: Option<f64>,
    /// Tasks whose body ran.
    pub(crate) tasks: usize,
    /// Requests behind the quantiles, of all rounds together.
    pub(crate) requests: usize,
}

impl Figures {
    /// Without side work (`nothing`) the quantiles are those of the whole window.
    pub(crate) fn of(answers: &[Answer], ledger: &Ledger, window: Duration) -> Self {
        let busy = ledger.busy();
        let counted = |due: Duration| match busy.is_empty() {
            true => due < window,
            false => within(&busy, due),
        };
        let mut latencies: Vec<_> =
            answers.iter().filter(|a| counted(a.due)).map(|a| millis(a.latency)).collect();
        latencies.sort_by(f64::total_cmp);
        let slow = answers.iter().filter(|a| a.due < window && a.latency > SLOW).count();
        Self {
            p50_ms: quantile(&latencies, 0.5),
            p99_ms: quantile(&latencies, 0.99),
            max_ms: latencies.last().copied(),
            over_50ms: slow as f64,
            longest_poll_ms: ledger.longest_poll().map(millis),
            boot_ms: ledger.last_finish(Queue::Normal).map(millis),
            idle_start_ms: ledger.first_start(Queue::Idle).map(millis),
            idle_finish_ms: ledger.last_finish(Queue::Idle).map(millis),
            tasks: ledger.started(),
            requests: latencies.len(),
        }
    }

    pub(crate) fn median_of(rounds: &[Self]) -> Self {
        let each = |field: fn(&Self) -> Option<f64>| median(rounds.iter().filter_map(field).collect());
        Self {
            p50_ms: each(|f| f.p50_ms),
            p99_ms: each(|f| f.p99_ms),
            max_ms: each(|f| f.max_ms),
            over_50ms: each(|f| Some(f.over_50ms)).unwrap_or(0.0),
            longest_poll_ms: each(|f| f.longest_poll_ms),
            boot_ms: each(|f| f.boot_ms),
            idle_start_ms: each(|f| f.idle_start_ms),
            idle_finish_ms: each(|f| f.idle_finish_ms),
            tasks: rounds.iter().map(|f| f.tasks).max().unwrap_or(0),
            requests: rounds.iter().map(|f| f.requests).sum(),
        }
    }
}

/// `busy` is merged and in order.
fn within(busy: &[(Duration, Duration)], due: Duration) -> bool {
    let next = busy.partition_point(|span| span.0 <= due);
    next > 0 && due < busy[next - 1].1
}

/// The nearest-rank quantile: a latency that some request really had.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 0 => Some(f64::midpoint(values[middle - 1], values[middle])),
        _ => Some(values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&hundred, 0.5), Some(50.0));
        assert_eq!(quantile(&hundred, 0.99), Some(99.0));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn median_of_an_even_number_of_rounds_is_the_middle_of_two() {
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn a_request_due_between_two_tasks_is_not_counted() {
        let ms = Duration::from_millis;
        let busy = [(ms(10), ms(20)), (ms(30), ms(40))];
        let counted: Vec<_> =
            [9, 10, 19, 20, 25, 30, 40].into_iter().filter(|&due| within(&busy, ms(due))).collect();
        assert_eq!(counted, [10, 19, 30]);
    }
}
