//! The symbol table, and the suggestions made from it: what to offer after the first letters of a name.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use afterboot::yield_if_due;

use super::BodyResult;
use crate::app::App;

const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "trait", "mod", "type", "static", "macro_rules!"];
const MODIFIERS: [&str; 7] = ["pub", "pub(crate)", "pub(super)", "async", "unsafe", "const", "default"];
/// A prefix longer than this has few names left; those are looked up in the table.
const LONGEST_PREFIX: usize = 6;
const OFFERED: usize = 5;

/// Where a name is defined: file by its place in the corpus, and line.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    defined: BTreeMap<String, Vec<(usize, usize)>>,
    places: usize,
}

pub(crate) async fn build(app: Arc<App>) -> BodyResult {
    let mut defined: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (number, file) in app.corpus.files.iter().enumerate() {
        for (line, text) in file.text.lines().enumerate() {
            if let Some(name) = definition(text) {
                defined.entry(name.to_owned()).or_default().push((number, line + 1));
            }
            if line % 64 == 0 {
                yield_if_due().await;
            }
        }
    }
    let places = defined.values().map(Vec::len).sum();
    let _ = app.symbols.set(SymbolTable { defined, places });
    Ok(())
}

/// The name that a line of Rust defines.
fn definition(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| MODIFIERS.contains(word));
    let keyword = words.next()?;
    let name = words.next().filter(|_| KEYWORDS.contains(&keyword))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

/// For each prefix the names used most often.
#[derive(Debug)]
pub(crate) struct Suggestions {
    by_prefix: HashMap<String, Vec<String>>,
}

pub(crate) async fn suggest(app: Arc<App>) -> BodyResult {
    let symbols = app.symbols.get().ok_or("suggestions need the symbol table")?;
    let mut uses: HashMap<&str, usize> = HashMap::new();
    for file in &app.corpus.files {
        for (line, text) in file.text.lines().enumerate() {
            for word in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
                if symbols.defined.contains_key(word) {
                    *uses.entry(word).or_default() += 1;
                }
            }
            if line % 16 == 0 {
                yield_if_due().await;
            }
        }
    }
    let mut by_use: Vec<_> = uses.into_iter().collect();
    by_use.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut by_prefix: HashMap<String, Vec<String>> = HashMap::new();
    for (name, _) in by_use {
        for (end, _) in name.char_indices().skip(1).take(LONGEST_PREFIX) {
            let offered = by_prefix.entry(name[..end].to_owned()).or_default();
            if offered.len() < OFFERED {
                offered.push(name.to_owned());
            }
        }
        yield_if_due().await;
    }
    let _ = app.suggestions.set(Suggestions { by_prefix });
    Ok(())
}

impl fmt::Display for SymbolTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names in {} places", self.defined.len(), self.places)
    }
}

impl fmt::Display for Suggestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.by_prefix.get("po").map_or(&[][..], Vec::as_slice);
        write!(f, "{} prefixes; po: {}", self.by_prefix.len(), first.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_found_behind_its_modifiers_and_before_its_generics() {
        assert_eq!(definition("    pub(crate) async fn suggest<T>(app: T) {"), Some("suggest"));
        assert_eq!(definition("macro_rules! cfg_rt {"), Some("cfg_rt"));
        assert_eq!(definition("    let fn_name = 3;"), None);
        assert_eq!(definition(""), None);
    }
}
