//! Output made from the corpus: documentation pages and a compressed snapshot.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

use afterboot::yield_if_due;
use flate2::Compression;
use flate2::write::GzEncoder;
use pulldown_cmark::{Options, Parser, html};

use super::BodyResult;
use crate::app::App;

#[derive(Debug)]
#[expect(dead_code, reason = "kept as a service would keep it; only the number of pages is shown")]
pub(crate) struct Page {
    title: String,
    html: String,
}

/// READMEs and changelogs first, then the page of each source file: its `//!` lines.
pub(crate) async fn render(app: Arc<App>) -> BodyResult {
    let mut pages = Vec::new();
    for one in &app.corpus.crates {
        for text in &one.pages {
            // A changelog is long: a piece at a time, cut where a heading begins.
            for section in text.split("\n## ") {
                pages.push(page(&one.name, section));
                yield_if_due().await;
            }
        }
    }
    for file in &app.corpus.files {
        let lines = file.text.lines().filter_map(|line| line.trim_start().strip_prefix("//!"));
        let text = lines.collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            pages.push(page(&file.name, &text));
        }
        yield_if_due().await;
    }
    let _ = app.pages.set(pages);
    Ok(())
}

fn page(title: &str, markdown: &str) -> Page {
    let mut html = String::with_capacity(markdown.len() * 3 / 2);
    html::push_html(&mut html, Parser::new_ext(markdown, Options::ENABLE_TABLES));
    Page { title: title.to_owned(), html }
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

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes as {}", self.plain, self.gzip.len())
    }
}
