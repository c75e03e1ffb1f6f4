//! Output made from the corpus: documentation pages and a compressed snapshot.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use afterboot::yield_if_due;
use flate2::Compression;
use flate2::write::GzEncoder;
use pulldown_cmark::{Options, Parser, html};

use super::BodyResult;
use crate::app::App;

/// HTML by title.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    html: BTreeMap<String, String>,
    bytes: usize,
}

/// READMEs and changelogs first, then a page for each source file: its `//!` lines.
pub(crate) async fn render(app: Arc<App>) -> BodyResult {
    let mut pages = Pages::default();
    for one in &app.corpus.crates {
        for text in &one.pages {
            // A changelog is long: a piece at a time, cut where a heading begins.
            for section in text.split("\n## ") {
                pages.add(&one.name, section);
                yield_if_due().await;
            }
        }
    }
    for file in &app.corpus.files {
        let lines = file.text.lines().filter_map(|line| line.trim_start().strip_prefix("//!"));
        pages.add(&file.name, &lines.collect::<Vec<_>>().join("\n"));
        yield_if_due().await;
    }
    let _ = app.pages.set(pages);
    Ok(())
}

impl Pages {
    fn add(&mut self, title: &str, markdown: &str) {
        if !markdown.is_empty() {
            let page = self.html.entry(title.to_owned()).or_default();
            let before = page.len();
            html::push_html(page, Parser::new_ext(markdown, Options::ENABLE_TABLES));
            self.bytes += page.len() - before;
        }
    }
}

/// Input between two looks at the clock: well under a millisecond of compression.
const STRIDE: usize = 8192;

/// The corpus as it would be sent to another machine.
#[derive(Debug)]
pub(crate) struct Snapshot {
    plain: usize,
    gzip: Vec<u8>,
}

pub(crate) async fn compress(app: Arc<App>) -> BodyResult {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for file in &app.corpus.files {
        writeln!(encoder, "{} {}", file.name, file.text.len())?;
        for piece in file.text.as_bytes().chunks(STRIDE) {
            encoder.write_all(piece)?;
            yield_if_due().await;
        }
    }
    let _ = app.snapshot.set(Snapshot { plain: app.corpus.bytes, gzip: encoder.finish()? });
    Ok(())
}

impl fmt::Display for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes of HTML", self.html.len(), self.bytes)
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes as {}", self.plain, self.gzip.len())
    }
}
