//! Which crates cargo compiled for this example, and where their sources are.
//!
//! Asked of cargo itself, by building this very example once more in the same profile (everything is fresh)
//! and reading the artifact messages. `cargo metadata` would also name crates for other platforms and
//! features, which were never downloaded.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::Failure;

/// Whichever example this module is part of.
const EXAMPLE: &str = env!("CARGO_CRATE_NAME");
/// Enough to compile the example, should it not be fresh after all.
const DEADLINE: Duration = Duration::from_secs(300);

/// The compiled crates by name, each with its version and its folder; of several versions the newest.
pub(crate) type Crates = BTreeMap<String, (String, PathBuf)>;

pub(crate) fn crates() -> Result<Crates, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = Build::of(&std::env::current_exe()?)?;
    let mut child = Command::new(&cargo)
        .args(["build", "--quiet", "--example", EXAMPLE, "--message-format=json", "--offline", "--locked"])
        .args(build.arguments())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {} to find the corpus: {error}", cargo.display()))?;
    let stdout = child.stdout.take().ok_or("cargo has no output")?;
    let (send, crates) = mpsc::channel();
    thread::spawn(move || send.send(read_artifacts(BufReader::new(stdout))));
    let Ok(crates) = crates.recv_timeout(DEADLINE) else {
        child.kill()?;
        return Err(format!("cargo did not answer within {DEADLINE:?}").into());
    };
    if !child.wait()?.success() {
        return Err("cargo could not build this example again: its words are above".into());
    }
    crates
}

/// The build that this program came from, read off its path: `<target>/<profile>/examples/<name>`.
#[derive(Debug, PartialEq, Eq)]
struct Build {
    target_dir: PathBuf,
    profile: String,
}

impl Build {
    fn of(program: &Path) -> Result<Self, Failure> {
        let folder =
            program.ancestors().nth(2).and_then(|folder| Some((folder.parent()?, folder.file_name()?)));
        let (target_dir, profile) =
            folder.ok_or_else(|| format!("{} is not in a cargo target directory", program.display()))?;
        let profile = match profile.to_string_lossy().into_owned() {
            debug if debug == "debug" => "dev".to_owned(),
            other => other,
        };
        Ok(Self { target_dir: target_dir.to_path_buf(), profile })
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--profile".into(), self.profile.clone()];
        arguments.extend(["--target-dir".into(), self.target_dir.display().to_string()]);
        // With others it would not be fresh.
        let features = [
            ("page", cfg!(feature = "page")),
            ("serde", cfg!(feature = "serde")),
            ("tower", cfg!(feature = "tower")),
            ("tracing-layer", cfg!(feature = "tracing-layer")),
        ];
        for (name, _) in features.into_iter().filter(|(_, enabled)| *enabled) {
            arguments.extend(["--features".into(), name.into()]);
        }
        arguments
    }
}

fn read_artifacts(messages: impl BufRead) -> Result<Crates, Failure> {
    let mut crates = Crates::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["reason"] == "compiler-artifact"
            && let Some((name, version)) = message["package_id"].as_str().and_then(name_and_version)
            && let Some(folder) = message["manifest_path"].as_str().and_then(|path| Path::new(path).parent())
        {
            let folder = folder.to_path_buf();
            if crates.get(&name).is_none_or(|known| numbers(&known.0) < numbers(&version)) {
                crates.insert(name, (version, folder));
            }
        }
    }
    Ok(crates)
}

/// From `registry+https://…#name@1.2.3`. Packages of the workspace itself (`path+file://…`) are not wanted.
fn name_and_version(package_id: &str) -> Option<(String, String)> {
    let (source, package) = package_id.split_once('#')?;
    let (name, version) = package.split_once('@')?;
    (!source.starts_with("path+")).then(|| (name.to_owned(), version.to_owned()))
}

/// `1.10.0` is newer than `1.9.0`, which the text is not.
fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_folder_is_the_dev_profile() {
        let build = Build::of(Path::new("/t/debug/examples/boot_latency")).expect("a target directory");
        assert_eq!(build, Build { target_dir: "/t".into(), profile: "dev".into() });
        let build = Build::of(Path::new("/t/release/examples/boot_latency")).expect("a target directory");
        assert_eq!(build.profile, "release");
    }

    #[test]
    fn artifacts_give_the_newest_of_each_crate_and_leave_the_workspace_out() {
        let messages = r##"{"reason":"build-script-executed","package_id":"registry+x#libc@0.2.0"}
{"reason":"compiler-artifact","package_id":"registry+https://x#tokio@1.2.3","manifest_path":"/r/older/Cargo.toml"}
{"reason":"compiler-artifact","package_id":"registry+https://x#tokio@1.10.0","manifest_path":"/r/new/Cargo.toml"}
{"reason":"compiler-artifact","package_id":"registry+https://x#tokio@1.9.0","manifest_path":"/r/old/Cargo.toml"}
{"reason":"compiler-artifact","package_id":"path+file:///w#0.1.0","manifest_path":"/w/Cargo.toml"}"##;
        let crates = read_artifacts(messages.as_bytes()).expect("valid JSON lines");
        let expected = ("tokio".to_owned(), ("1.10.0".to_owned(), PathBuf::from("/r/new")));
        assert_eq!(crates.into_iter().collect::<Vec<_>>(), [expected]);
    }
}
