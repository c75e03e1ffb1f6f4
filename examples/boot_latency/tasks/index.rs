//! The search index: for each three bytes in a row, the files that have them.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use afterboot::yield_if_due;

use super::BodyResult;
use crate::app::App;

/// Bytes between two looks at the clock: about a tenth of a millisecond of indexing.
const STRIDE: usize = 4096;

#[derive(Debug)]
pub(crate) struct TrigramIndex {
    /// Files by their place in the corpus, ascending.
    files: HashMap<[u8; 3], Vec<u32>>,
}

pub(crate) async fn build(app: Arc<App>) -> BodyResult {
    let mut files: HashMap<[u8; 3], Vec<u32>> = HashMap::new();
    for (number, file) in app.corpus.files.iter().enumerate() {
        let number = u32::try_from(number)?;
        let bytes = file.text.as_bytes();
        for start in (0..bytes.len()).step_by(STRIDE) {
            // Two bytes into the next stride, so that no trigram falls between two.
            let end = bytes.len().min(start + STRIDE + 2);
            for trigram in trigrams(&bytes[start..end]) {
                let with_it = files.entry(trigram).or_default();
                if with_it.last() != Some(&number) {
                    with_it.push(number);
                }
            }
            yield_if_due().await;
        }
    }
    let _ = app.index.set(TrigramIndex { files });
    Ok(())
}

fn trigrams(bytes: &[u8]) -> impl Iterator<Item = [u8; 3]> + '_ {
    bytes.windows(3).map(|three| [three[0], three[1], three[2]])
}

impl TrigramIndex {
    /// The files that may contain `query`; `None` for a query too short to tell.
    pub(crate) fn candidates(&self, query: &str) -> Option<Vec<usize>> {
        let files = |trigram| self.files.get(&trigram).map_or(&[][..], Vec::as_slice);
        let mut lists: Vec<&[u32]> = trigrams(query.as_bytes()).map(files).collect();
        lists.sort_by_key(|list| list.len());
        let (shortest, others) = lists.split_first()?;
        let in_all = |file: &&u32| others.iter().all(|list| list.binary_search(file).is_ok());
        Some(shortest.iter().filter(in_all).map(|&file| file as usize).collect())
    }
}

impl fmt::Display for TrigramIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} trigrams", self.files.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_every_trigram_of_the_query_are_candidates() {
        let lists: [(&[u8; 3], &[u32]); 3] = [(b"abc", &[0, 1, 2, 5]), (b"bcd", &[1, 2]), (b"cde", &[2, 5])];
        let files = lists.into_iter().map(|(trigram, files)| (*trigram, files.to_vec())).collect();
        let index = TrigramIndex { files };
        assert_eq!(index.candidates("abcd"), Some(vec![1, 2]));
        assert_eq!(index.candidates("abcde"), Some(vec![2]));
        assert_eq!(index.candidates("xyz"), Some(vec![]));
        assert_eq!(index.candidates("ab"), None);
    }
}
