//! Small startup work, some of which goes wrong: manifests, recent files, synonyms, saved searches, a usage
//! ping.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::sync::Arc;
use std::time::SystemTime;

use afterboot::yield_if_due;

use super::BodyResult;
use crate::app::App;

/// Marks the panic that belongs to the example.
const DELIBERATE: &str = "deliberate: ";

/// Keeps it off the screen; any other panic is printed as usual.
pub(crate) fn hide_deliberate_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>();
        if !text.is_some_and(|text| text.contains(DELIBERATE)) {
            usual(info);
        }
    }));
}

/// By crate.
#[derive(Debug, Default)]
pub(crate) struct Manifests {
    features: BTreeMap<String, Vec<String>>,
    dependencies: BTreeMap<String, Vec<String>>,
}

/// Manifests as cargo publishes them: normalised, one key a line, a table for each dependency.
pub(crate) async fn parse_manifests(app: Arc<App>) -> BodyResult {
    let mut manifests = Manifests::default();
    for one in &app.corpus.crates {
        let features = manifests.features.entry(one.name.clone()).or_default();
        let dependencies = manifests.dependencies.entry(one.name.clone()).or_default();
        let mut table = "";
        for line in one.manifest.lines() {
            if let Some(header) = line.strip_prefix('[') {
                table = header.trim_matches(['[', ']']);
                dependencies.extend(table.split_once("dependencies.").map(|(_, name)| name.to_owned()));
            } else if table == "features" {
                features.extend(line.split_once(" = ").map(|(name, _)| name.to_owned()));
            }
        }
        yield_if_due().await;
    }
    let _ = app.manifests.set(manifests);
    Ok(())
}

#[derive(Debug)]
pub(crate) struct RecentFile {
    name: String,
    modified: SystemTime,
}

/// Asks the disk for each file, one blocking call after another.
pub(crate) fn list_recent(app: &App) -> BodyResult {
    let mut recent = Vec::new();
    for file in &app.corpus.files {
        let modified = fs::metadata(&file.path)?.modified()?;
        recent.push(RecentFile { name: file.name.clone(), modified });
    }
    recent.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.name.cmp(&b.name)));
    let _ = app.recent.set(recent);
    Ok(())
}

/// Fails: nobody ships this file, and the search works without it.
pub(crate) async fn load_synonyms(app: Arc<App>) -> BodyResult {
    let folder = &app.corpus.crates.first().ok_or("no crate to look in")?.folder;
    let path = folder.join("search-synonyms.txt");
    fs::read_to_string(&path).map_err(|error| format!("search-synonyms.txt: {error}"))?;
    Ok(())
}

/// Panics: written by an older version, read without a check.
pub(crate) async fn restore_searches() -> BodyResult {
    const SAVED: &str = "v1;spawn_blocking;impl Future";
    let version = SAVED.split(';').next().and_then(|version| version.strip_prefix('v'));
    assert_eq!(version, Some("2"), "{DELIBERATE}saved searches are of another version");
    Ok(())
}

/// Switched off: its condition is false, so this is never entered.
pub(crate) async fn ping() -> BodyResult {
    Err("the usage ping ran although its condition is false".into())
}

impl fmt::Display for Manifests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |by_crate: &BTreeMap<String, Vec<String>>| by_crate.values().map(Vec::len).sum::<usize>();
        let (features, dependencies) = (total(&self.features), total(&self.dependencies));
        write!(f, "{} crates, {features} features, {dependencies} dependencies", self.features.len())
    }
}

impl fmt::Display for RecentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_epoch = self.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        write!(f, "{} ({} s)", self.name, since_epoch.as_secs())
    }
}
