//! The README holds to the manifest and to the simulation.

use crate::schedules::{Named, all, beside};
use crate::sim::{Summary, World, summary};

const README: &str = include_str!("../../README.md");

#[test]
fn the_readmes_version_and_oldest_rust_are_the_manifests() {
    let version = env!("CARGO_PKG_VERSION");
    let rust = env!("CARGO_PKG_RUST_VERSION");
    let told = format!("Version {version}, Rust {rust} or newer, {}.", "MIT or Apache-2.0");
    assert!(README.contains(&told), "the README does not say {told:?}");
    assert_eq!(env!("CARGO_PKG_LICENSE"), "MIT OR Apache-2.0");
}

/// The cells of the row whose first cell is `title`, marked or not.
fn row(title: &str) -> Option<Vec<&'static str>> {
    README
        .lines()
        .map(|line| {
            line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('*')).collect::<Vec<_>>()
        })
        .find(|cells| cells[0] == title)
}

#[test]
fn the_readmes_table_is_what_the_example_prints() {
    for Named { title, behaviour, .. } in all(1).into_iter().chain(beside(1)) {
        let Summary { retries, peak, mean_wait, p99_wait } = summary(World::of(6), &behaviour, 20);
        let printed = [
            format!("{retries:.0}"),
            format!("{peak:.0}"),
            format!("{:.2} s", mean_wait.as_secs_f64()),
            format!("{:.2} s", p99_wait.as_secs_f64()),
        ];
        assert_eq!(
            row(&title).map(|cells| cells[1..].to_vec()),
            Some(printed.each_ref().map(String::as_str).to_vec()),
            "{title}"
        );
    }
}

#[test]
fn the_readmes_longer_outages_are_what_the_example_prints() {
    let columns = ["uploader, full jitter", "default", "gate, 1 process", "gate, 100 processes"];
    let schedules: Vec<Named> = all(1).into_iter().chain(beside(1)).collect();
    for outage in [20, 60, 300] {
        let cells = row(&format!("{outage} s")).unwrap();
        for (column, cell) in columns.iter().zip(&cells[1..]) {
            let schedule = schedules.iter().find(|schedule| schedule.title == *column).unwrap();
            let Summary { retries, peak, .. } = summary(World::of(outage), &schedule.behaviour, 200);
            assert_eq!(*cell, format!("{retries:.0}, {peak:.0}"), "{column}, {outage} s");
        }
    }
}

#[test]
fn the_picture_is_small_and_shows_every_schedule() {
    let picture = include_str!("../../docs/herd.svg");
    assert!(picture.len() < 300_000);
    for schedule in all(1) {
        assert!(picture.contains(&format!(">{}<", schedule.title)), "{}", schedule.title);
    }
}
