//! All rounds, and the medians of each strategy on each runtime.

use std::time::Duration;

use afterboot::Report;

use crate::Failure;
use crate::figures::Figures;
use crate::output::Row;
use crate::round::{Flavor, Scene};
use crate::strategy::Strategy;

/// A schedule later than this makes slow requests by itself, whatever the service does.
const LATE: Duration = Duration::from_millis(20);

pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    /// The governor's own reports of the last round.
    pub(crate) reports: Vec<(Flavor, Report)>,
}

/// Runtimes and strategies in turn within each round, so that what the machine does meanwhile meets all of
/// them.
pub(crate) fn measure(scene: &Scene<'_>, strategies: &[Strategy]) -> Result<Results, Failure> {
    let rounds = scene.options.rounds;
    let cases: Vec<_> = Flavor::BOTH
        .iter()
        .flat_map(|flavor| strategies.iter().map(|strategy| (*flavor, *strategy)))
        .collect();
    let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); cases.len()];
    let mut reports = Vec::new();
    for round in 1..=rounds {
        reports.clear();
        for (&(flavor, strategy), figures) in cases.iter().zip(&mut figures) {
            eprintln!("round {round} of {rounds}: {flavor}, {}", strategy.name());
            let measured = scene.run(flavor, strategy)?;
            if measured.lateness > LATE {
                eprintln!("note: no core for the client's own schedule for {:.0?}", measured.lateness);
            }
            figures.push(measured.figures);
            if strategy == Strategy::Governed {
                reports.extend(measured.report.map(|report| (flavor, report)));
            }
        }
    }
    let row = |(&(flavor, strategy), rounds): (_, &Vec<Figures>)| Row {
        flavor,
        strategy,
        figures: Figures::median_of(rounds),
    };
    Ok(Results { rows: cases.iter().zip(&figures).map(row).collect(), reports })
}
