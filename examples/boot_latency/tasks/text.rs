//! What is read off the text itself: licences, duplicates, line statistics.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use afterboot::yield_if_due;

use super::BodyResult;
use crate::app::App;

const LICENCES: [&str; 6] = ["mit license", "apache license", "apache-2.0", "bsd", "spdx", "copyright"];

/// Crates by licence expression, and files that speak of a licence themselves.
#[derive(Debug, Default)]
pub(crate) struct Licences {
    crates: BTreeMap<String, usize>,
    files: usize,
}

pub(crate) async fn scan_licences(app: Arc<App>) -> BodyResult {
    let mut licences = Licences::default();
    for one in &app.corpus.crates {
        let expression = one.manifest.lines().find_map(|line| line.strip_prefix("license = "));
        *licences.crates.entry(expression.unwrap_or("none").trim_matches('"').to_owned()).or_default() += 1;
    }
    for file in &app.corpus.files {
        let mut speaks = false;
        for (line, text) in file.text.lines().enumerate() {
            if let Some((_, comment)) = text.split_once("//") {
                let comment = comment.to_lowercase();
                speaks |= LICENCES.iter().any(|name| comment.contains(name));
            }
            if line % 64 == 0 {
                yield_if_due().await;
            }
        }
        licences.files += usize::from(speaks);
    }
    let _ = app.licences.set(licences);
    Ok(())
}

/// Lines in a row that make a block.
const BLOCK: usize = 6;

/// Blocks of six lines, indentation and empty lines aside, that stand in more than one place.
#[derive(Debug)]
pub(crate) struct Duplicates {
    blocks: usize,
    places: usize,
}

pub(crate) async fn find_duplicates(app: Arc<App>) -> BodyResult {
    let mut places: HashMap<u64, usize> = HashMap::new();
    for file in &app.corpus.files {
        let lines: Vec<_> = file.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        for (start, block) in lines.windows(BLOCK).enumerate() {
            let mut hasher = DefaultHasher::new();
            block.hash(&mut hasher);
            *places.entry(hasher.finish()).or_default() += 1;
            if start % 64 == 0 {
                yield_if_due().await;
            }
        }
    }
    let mut found = Duplicates { blocks: 0, places: 0 };
    for (number, count) in places.into_values().enumerate() {
        if count > 1 {
            found.blocks += 1;
            found.places += count;
        }
        if number % 1024 == 0 {
            yield_if_due().await;
        }
    }
    let _ = app.duplicates.set(found);
    Ok(())
}

#[derive(Debug, Default)]
pub(crate) struct LineStatistics {
    code: usize,
    comment: usize,
    blank: usize,
    longest: usize,
    /// Lines by length in steps of ten characters.
    lengths: BTreeMap<usize, usize>,
}

pub(crate) async fn count_lines(app: Arc<App>) -> BodyResult {
    let mut lines = LineStatistics::default();
    for file in &app.corpus.files {
        for (number, text) in file.text.lines().enumerate() {
            match text.trim_start() {
                "" => lines.blank += 1,
                comment if comment.starts_with("//") => lines.comment += 1,
                _ => lines.code += 1,
            }
            let length = text.chars().count();
            lines.longest = lines.longest.max(length);
            *lines.lengths.entry(length / 10).or_default() += 1;
            if number % 64 == 0 {
                yield_if_due().await;
            }
        }
    }
    let _ = app.lines.set(lines);
    Ok(())
}

impl fmt::Display for Licences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (expression, crates) in &self.crates {
            write!(f, "{crates} x {expression}, ")?;
        }
        write!(f, "{} files speak of one", self.files)
    }
}

impl fmt::Display for Duplicates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks in {} places", self.blocks, self.places)
    }
}

impl fmt::Display for LineStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, comment, blank, longest, lengths } = self;
        let common = lengths.iter().max_by_key(|entry| entry.1).map_or(0, |entry| entry.0 * 10);
        write!(
            f,
            "{code} code, {comment} comment, {blank} blank; longest {longest}, most {common}..{}",
            common + 9
        )
    }
}
