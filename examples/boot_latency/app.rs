//! The application: a corpus in memory, and what its side tasks add to it one by one while it already
//! answers.

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use crate::corpus::{Corpus, File};
use crate::tasks::index::TrigramIndex;
use crate::tasks::listing::{Manifests, RecentFile};
use crate::tasks::pages::{Pages, Snapshot};
use crate::tasks::symbols::{Suggestions, SymbolTable};
use crate::tasks::text::{Duplicates, Licences, LineStatistics};

/// A search without index looks at this much of the corpus and no further: an answer must be quick from the
/// start.
const SCAN: usize = 32 * 1024;
const HITS: usize = 5;
/// Files opened for one search at most, for the same reason.
const OPENED: usize = 12;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) corpus: Arc<Corpus>,
    pub(crate) index: OnceLock<TrigramIndex>,
    pub(crate) symbols: OnceLock<SymbolTable>,
    pub(crate) suggestions: OnceLock<Suggestions>,
    pub(crate) manifests: OnceLock<Manifests>,
    pub(crate) recent: OnceLock<Vec<RecentFile>>,
    pub(crate) licences: OnceLock<Licences>,
    pub(crate) duplicates: OnceLock<Duplicates>,
    pub(crate) lines: OnceLock<LineStatistics>,
    pub(crate) pages: OnceLock<Pages>,
    pub(crate) snapshot: OnceLock<Snapshot>,
}

impl App {
    pub(crate) fn new(corpus: Arc<Corpus>) -> Arc<Self> {
        Arc::new(Self {
            corpus,
            index: OnceLock::new(),
            symbols: OnceLock::new(),
            suggestions: OnceLock::new(),
            manifests: OnceLock::new(),
            recent: OnceLock::new(),
            licences: OnceLock::new(),
            duplicates: OnceLock::new(),
            lines: OnceLock::new(),
            pages: OnceLock::new(),
            snapshot: OnceLock::new(),
        })
    }

    pub(crate) fn home(&self) -> String {
        let mut page = format!("{} files, {} bytes\n", self.corpus.files.len(), self.corpus.bytes);
        let mut part = |name: &str, state: Option<String>| {
            // Writing to a String does not fail.
            let _ = writeln!(page, "{name}: {}", state.as_deref().unwrap_or("not yet"));
        };
        part("search index", self.index.get().map(ToString::to_string));
        part("symbol table", self.symbols.get().map(ToString::to_string));
        part("suggestions", self.suggestions.get().map(ToString::to_string));
        part("manifests", self.manifests.get().map(ToString::to_string));
        part("newest file", self.recent.get().and_then(|all| all.first()).map(ToString::to_string));
        part("licences", self.licences.get().map(ToString::to_string));
        part("duplicates", self.duplicates.get().map(ToString::to_string));
        part("lines", self.lines.get().map(ToString::to_string));
        part("pages", self.pages.get().map(ToString::to_string));
        part("snapshot", self.snapshot.get().map(ToString::to_string));
        page
    }

    pub(crate) fn search(&self, query: &str) -> String {
        let mut answer = String::new();
        match self.index.get().and_then(|index| index.candidates(query)) {
            Some(files) => self.find(query, files.into_iter().take(OPENED), usize::MAX, &mut answer),
            None => self.find(query, 0..self.corpus.files.len(), SCAN, &mut answer),
        }
        if answer.is_empty() {
            answer.push_str("nothing found yet\n");
        }
        answer
    }

    fn find(&self, query: &str, files: impl Iterator<Item = usize>, mut budget: usize, answer: &mut String) {
        let mut hits = 0;
        for File { name, text, .. } in files.map(|file| &self.corpus.files[file]) {
            // A file that the budget would cut inside a character is left for the index.
            let text = text.get(..budget.min(text.len())).unwrap_or_default();
            if let Some(at) = text.find(query) {
                let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
                let line = text[start..].lines().next().unwrap_or_default();
                let _ = writeln!(answer, "{name}: {}", line.trim());
                hits += 1;
            }
            budget -= text.len().min(budget);
            if hits == HITS || budget == 0 {
                return;
            }
        }
    }
}
