//! Throttles error reports: at most one in N days, for all processes of a machine together.

mod day;
mod store;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::error::PolicyError;

pub use day::{DayDecision, day_number};
use store::{Answer, FileStore};

/// Allows at most one error report in N days, however many errors, restarts and processes there are.
///
/// The day of the last report is stored in a file, as days since 2010-01-01 UTC (the format of Facebook's script-error
/// reporter). The file is replaced atomically under the lock file `<file>.lock`. The day is stored before the report is
/// sent: at most once, not at least once.
///
/// - A stored day in the future came from an incorrect clock: the error is reported and the day corrected.
/// - Content that is not a number counts as never reported.
/// - If the file cannot be read, written or locked, each process reports at most once.
/// - If another process is deciding at the same moment, its decision holds for both: no call waits for a lock.
/// - Only errors whose origin (module path or crate) is listed are considered.
///
/// Decisions do blocking file I/O, a few small calls for each error that is considered.
///
/// ```
/// use afterboot_retry::{ReportDecision, ReportThrottle};
///
/// let folder = tempfile::tempdir()?;
/// let throttle = ReportThrottle::builder(folder.path().join("last-report"))
///     .origins(["my_app"])
///     .build_name("1.4.2")
///     .channel("beta")
///     .build()?;
/// match throttle.should_report("my_app::boot") {
///     ReportDecision::Report(stamp) => println!("day {}, last {:?}", stamp.today, stamp.last_day),
///     ReportDecision::Silent(why) => println!("not reported: {why:?}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReportThrottle(Arc<ReportThrottleBuilder>);

/// Builds a [`ReportThrottle`]. Setters store; [`build`](ReportThrottleBuilder::build) validates.
#[must_use = "a builder does nothing until `build` is called"]
#[derive(Debug, Clone)]
pub struct ReportThrottleBuilder {
    path: PathBuf,
    every_days: u32,
    origins: Vec<String>,
    build_name: String,
    channel: String,
}

/// Whether to report an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[must_use = "the day is already stored: the next call does not ask for this report again"]
pub enum ReportDecision {
    /// Report now, with this data.
    Report(ReportStamp),
    /// Do not report, for this reason.
    Silent(Silence),
}

/// The data that a report should carry, so that its receiver can count machines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ReportStamp {
    /// Days since 2010-01-01 UTC.
    pub today: i64,
    /// The stored day of the previous report; `None` if none was stored, or no number.
    pub last_day: Option<i64>,
    /// The build, as given to the builder.
    pub build: String,
    /// The release channel, as given to the builder.
    pub channel: String,
    /// The error of the store, if it does not work. Each process then reports once, so such reports must not be counted as
    /// machines.
    pub storage_error: Option<String>,
}

/// Why an error is not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Silence {
    /// The origin is not listed.
    Origin,
    /// There was a report within the last N days.
    Reported {
        /// The day of that report.
        last_day: i64,
        /// The first day on which another report is allowed.
        next_day: i64,
    },
    /// Another process or thread holds the lock and decides.
    DecidedElsewhere,
    /// The store does not work and this process has already reported.
    ReportedByThisProcess,
}

impl ReportThrottle {
    /// Returns a builder of a throttle that stores the day in the file at `path`, whose folder must exist.
    pub fn builder(path: impl Into<PathBuf>) -> ReportThrottleBuilder {
        ReportThrottleBuilder {
            path: path.into(),
            every_days: 3,
            origins: Vec::new(),
            build_name: String::new(),
            channel: String::new(),
        }
    }

    /// Decides whether to report an error from `origin`, a module path (`module_path!()`) or the name of a crate.
    #[expect(clippy::disallowed_methods, reason = "a report is counted by the day on the wall clock")]
    pub fn should_report(&self, origin: &str) -> ReportDecision {
        self.should_report_at(origin, SystemTime::now())
    }

    /// [`should_report`](ReportThrottle::should_report) with `now` as the current time.
    pub fn should_report_at(&self, origin: &str, now: SystemTime) -> ReportDecision {
        if !self.counts(origin) {
            return ReportDecision::Silent(Silence::Origin);
        }
        let today = day_number(now);
        let mut decided = None;
        let answer = FileStore::new(&self.0.path).update(|stored| {
            let decision = DayDecision::of(stored, today, self.0.every_days);
            decided = Some(decision);
            decision.report.then(|| today.to_string())
        });
        match (answer, decided) {
            (Answer::Busy, _) => ReportDecision::Silent(Silence::DecidedElsewhere),
            (Answer::Done, Some(decision)) if !decision.report => {
                let last_day = decision.last_day.unwrap_or(today);
                let next_day = last_day.saturating_add(i64::from(self.0.every_days));
                ReportDecision::Silent(Silence::Reported { last_day, next_day })
            }
            (Answer::Done, decided) => ReportDecision::Report(self.stamp(
                today,
                decided.and_then(|decision| decision.last_day),
                None,
            )),
            (Answer::Broken(error), _) if first_in_this_process(&self.0.path) => {
                ReportDecision::Report(self.stamp(today, None, Some(error.to_string())))
            }
            (Answer::Broken(_), _) => ReportDecision::Silent(Silence::ReportedByThisProcess),
        }
    }

    fn counts(&self, origin: &str) -> bool {
        self.0.origins.iter().any(|listed| {
            origin.strip_prefix(listed.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        })
    }

    fn stamp(&self, today: i64, last_day: Option<i64>, storage_error: Option<String>) -> ReportStamp {
        let (build, channel) = (self.0.build_name.clone(), self.0.channel.clone());
        ReportStamp { today, last_day, build, channel, storage_error }
    }
}

impl ReportThrottleBuilder {
    /// Sets the number of days N. Default: 3. At least 1.
    pub fn every_days(mut self, days: u32) -> ReportThrottleBuilder {
        self.every_days = days;
        self
    }

    /// Sets the crates or modules whose errors are considered, submodules included. Must not be empty: errors of foreign
    /// code (extensions, plug-ins) would otherwise use up the report.
    pub fn origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> ReportThrottleBuilder {
        self.origins = origins.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the build that the stamp carries. Default: empty.
    pub fn build_name(mut self, build: impl Into<String>) -> ReportThrottleBuilder {
        self.build_name = build.into();
        self
    }

    /// Sets the release channel that the stamp carries. Default: empty.
    pub fn channel(mut self, channel: impl Into<String>) -> ReportThrottleBuilder {
        self.channel = channel.into();
        self
    }

    /// Validates all fields. Accesses no file.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] lists every invalid field: a path without a file name, zero days, no origins or an empty one.
    pub fn build(self) -> Result<ReportThrottle, PolicyError> {
        let mut problems = Vec::new();
        if self.path.file_name().is_none() {
            problems.push(format!("path: {:?}; allowed: the path of a file", self.path));
        }
        if self.every_days == 0 {
            problems.push("every_days: 0; allowed: 1 or more".to_owned());
        }
        if self.origins.is_empty() || self.origins.iter().any(String::is_empty) {
            problems.push(format!("origins: {:?}; allowed: names of crates or modules", self.origins));
        }
        PolicyError::unless_empty(problems).map(|()| ReportThrottle(Arc::new(self)))
    }
}

/// For stores that do not work: true once for each path in the lifetime of the process, for all throttles.
fn first_in_this_process(path: &Path) -> bool {
    static REPORTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned())
}
