//! A process of its own in which calls of the system hang or fail as a test wants: threads, files, names.
//!
//! The test runs this binary once more for itself alone, with `tests/support/shim.c` before the C library.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use afterboot_beacon::SpoolOptions;

use crate::common::files;

const GATES: &str = "SHIM_GATES";
const UNDER: &str = "SHIM_UNDER";

#[derive(Debug)]
pub(crate) struct Shim {
    gates: PathBuf,
    under: PathBuf,
}

/// As long as this lives, a call hangs or fails.
#[derive(Debug)]
pub(crate) struct Gate(PathBuf);

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Shim {
    /// None: the test has run, in a process of its own, or it cannot be here and says so.
    pub(crate) fn enter(test: &str) -> Option<Shim> {
        if let (Some(gates), Some(under)) = (env::var_os(GATES), env::var_os(UNDER)) {
            return Some(Shim { gates: gates.into(), under: under.into() });
        }
        let folder = tempfile::tempdir().expect("a folder");
        let folder_path = fs::canonicalize(folder.path()).expect("its path");
        let library = match compile(&folder_path) {
            Ok(library) => library,
            Err(why) => {
                skipped(test, &why);
                return None;
            }
        };
        let (gates, under) = (folder_path.join("gates"), folder_path.join("under"));
        fs::create_dir(&gates).expect("a folder");
        fs::create_dir(&under).expect("a folder");
        let mut command = Command::new(env::current_exe().expect("this program's path"));
        command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
        command.env(GATES, gates).env(UNDER, under).env("LD_PRELOAD", library);
        let output = command.output().expect("a child process");
        let said =
            [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said).into_owned()).concat();
        assert!(output.status.success() && said.contains("1 passed"), "{}: {said}", output.status);
        None
    }

    #[must_use]
    pub(crate) fn hang(&self, call: &str) -> Gate {
        self.gate("hang", call)
    }

    #[must_use]
    pub(crate) fn fail(&self, call: &str) -> Gate {
        self.gate("fail", call)
    }

    /// From now on only so many threads are made.
    #[must_use]
    pub(crate) fn allow_threads(&self, threads: usize) -> Gate {
        let made = self.gates.join("new");
        fs::write(&made, threads.to_string()).expect("a gate");
        let path = self.gates.join("fail.pthread_create");
        fs::rename(made, &path).expect("a gate");
        Gate(path)
    }

    fn gate(&self, how: &str, call: &str) -> Gate {
        let path = self.gates.join(format!("{how}.{call}"));
        fs::write(&path, "").expect("a gate");
        Gate(path)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.under.join("spool")
    }

    pub(crate) fn options(&self) -> SpoolOptions {
        SpoolOptions::new(self.root())
    }

    /// The directories of processes, living or not.
    pub(crate) fn processes(&self) -> Vec<PathBuf> {
        let mut dirs = files(&self.root());
        dirs.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("p-")));
        dirs
    }
}

/// The names of this process's threads.
pub(crate) fn threads() -> Vec<String> {
    let tasks = files(Path::new("/proc/self/task"));
    let name = |task: &PathBuf| Some(fs::read_to_string(task.join("comm")).ok()?.trim().to_owned());
    tasks.iter().filter_map(name).collect()
}

/// How many threads are of the beacon's making.
pub(crate) fn own_threads() -> usize {
    threads().iter().filter(|name| name.starts_with("afterboot")).count()
}

fn compile(folder: &Path) -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Err("it is for Linux with glibc".to_owned());
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/shim.c");
    let library = folder.join("shim.so");
    let mut command = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    match command.output() {
        Ok(output) if output.status.success() => Ok(library),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("no C compiler: {error}")),
    }
}

fn skipped(test: &str, why: &str) {
    #[expect(clippy::print_stderr, reason = "a test that could not be says so")]
    {
        eprintln!("SKIPPED {test}: {why}");
    }
}
