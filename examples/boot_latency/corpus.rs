//! The source code that the service searches: crates cargo has compiled for this example, read into memory
//! before anything is measured.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::compiled;

/// Pinned, so that a new dependency does not change what is measured. Versions are those of `Cargo.lock`.
const CRATES: [&str; 24] = [
    "bytes",
    "flate2",
    "futures-channel",
    "futures-core",
    "futures-util",
    "http",
    "http-body",
    "httparse",
    "hyper",
    "hyper-util",
    "memchr",
    "miniz_oxide",
    "mio",
    "pin-project-lite",
    "proc-macro2",
    "pulldown-cmark",
    "quote",
    "rand",
    "serde_core",
    "serde_json",
    "socket2",
    "syn",
    "tokio",
    "tracing-core",
];

#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) manifest: String,
    /// README and changelog, as far as the crate has them.
    pub(crate) pages: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct File {
    /// `crate/src/….rs`
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Corpus {
    pub(crate) crates: Vec<Crate>,
    pub(crate) files: Vec<File>,
    pub(crate) bytes: usize,
}

impl Corpus {
    pub(crate) fn of_compiled_crates() -> Result<Self, Failure> {
        let compiled = compiled::crates()?;
        let missing: Vec<_> = CRATES.into_iter().filter(|name| !compiled.contains_key(*name)).collect();
        if !missing.is_empty() {
            return Err(format!(
                "no corpus: cargo compiled {} crates for this example, but not {}",
                compiled.len(),
                missing.join(", ")
            )
            .into());
        }
        let mut corpus = Self::default();
        for name in CRATES {
            let (version, folder) = &compiled[name];
            corpus.add_crate(name, folder).map_err(|error| {
                format!(
                    "no corpus: cannot read the source of {name} {version} in {}: {error}",
                    folder.display()
                )
            })?;
        }
        Ok(corpus)
    }

    /// This example's own service, for runs that measure the governor alone.
    pub(crate) fn of_this_example() -> Self {
        let mut corpus = Self::default();
        for (name, text) in
            [("service.rs", include_str!("service.rs")), ("client.rs", include_str!("client.rs"))]
        {
            corpus.add_file(format!("boot_latency/{name}"), PathBuf::from(name), text.to_owned());
        }
        corpus
    }

    fn add_crate(&mut self, name: &str, folder: &Path) -> Result<(), Failure> {
        let optional = |file| fs::read_to_string(folder.join(file)).ok();
        self.crates.push(Crate {
            name: name.to_owned(),
            folder: folder.to_path_buf(),
            manifest: fs::read_to_string(folder.join("Cargo.toml"))?,
            pages: ["README.md", "CHANGELOG.md"].into_iter().filter_map(optional).collect(),
        });
        for path in rust_files(&folder.join("src"))? {
            let name = format!("{name}/{}", path.strip_prefix(folder)?.display());
            let text = fs::read_to_string(&path)?;
            self.add_file(name, path, text);
        }
        Ok(())
    }

    fn add_file(&mut self, name: String, path: PathBuf, text: String) {
        self.bytes += text.len();
        self.files.push(File { name, path, text });
    }
}

/// All `.rs` files below `folder`, in the same order on every machine.
fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pinned_crate_is_in_the_lock_file() {
        let lock =
            fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).expect("a lock file");
        for name in CRATES {
            assert!(lock.contains(&format!("name = \"{name}\"\n")), "{name} is not in Cargo.lock");
        }
    }
}
