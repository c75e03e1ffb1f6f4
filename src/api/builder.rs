//! What a governor is to be: setters store, `build()` checks everything at once.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use rand::TryRng;
use rand::rngs::SysRng;
use tokio::runtime::Handle;

use crate::api::governor::Governor;
use crate::api::plan;
use crate::core::Core;
use crate::model::error::ConfigError;
use crate::model::gate_rules::GateRules;
use crate::model::monkey::Monkey;
use crate::model::profile::Profile;
use crate::shell::output::TaskOutput;
use crate::shell::shared::{Limits, Shared};
use crate::shell::signals::Signals;
use crate::shell::start::start;

/// Collects what a governor is to be; [`build`](Builder::build) checks everything at once.
#[derive(Debug)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    name: Cow<'static, str>,
    profile: Profile,
    gate: GateRules,
    monkey: Option<Monkey>,
    seed: Option<u64>,
    runtime: Option<Handle>,
    signals: Signals,
    overrides: Vec<Override>,
    stuck_after: Duration,
    segments: bool,
    samples: bool,
}

/// A profile's text from outside, and where it came from.
#[derive(Debug)]
struct Override {
    origin: String,
    text: Result<String, ConfigError>,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            name: Cow::Borrowed("boot"),
            profile: Profile::default(),
            gate: GateRules {
                quiet: Duration::from_secs(5),
                gate_timeout: Duration::from_secs(45),
                max_in_flight: 2,
                await_ready: false,
                interactive: false,
                resume_quiet: Duration::from_millis(500),
                max_hold: Duration::from_secs(5),
            },
            monkey: None,
            seed: None,
            runtime: None,
            signals: Signals::default(),
            overrides: Vec::new(),
            stuck_after: Duration::from_secs(1),
            segments: false,
            samples: false,
        }
    }

    /// The governor's name in reports, logs and spans. Default `boot`; not empty.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Builder {
        self.name = name.into();
        self
    }

    /// Concurrency, delay, pulse, and the monkey where the profile has one. Default: [`Profile::default`].
    pub fn profile(mut self, profile: Profile) -> Builder {
        self.profile = profile;
        self
    }

    /// Delays one task on purpose; the same as [`Profile::monkey`], and it wins over that. Default: none.
    pub fn monkey(mut self, monkey: Monkey) -> Builder {
        self.monkey = Some(monkey);
        self
    }

    /// The seed of the random monkey, for repeating a run. Default: drawn from the operating system.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = Some(seed);
        self
    }

    /// The runtime on which everything runs. Default: the one `build` is called in.
    pub fn runtime(mut self, runtime: Handle) -> Builder {
        self.runtime = Some(runtime);
        self
    }

    /// Reads one environment variable in the text form of [`Profile`] and sets what it names, over what
    /// [`profile`](Builder::profile) gave. An unset or empty variable sets nothing; a bad one makes
    /// [`build`](Builder::build) fail, with the variable's name, the key, the value and what is allowed.
    ///
    /// `AFTERBOOT='concurrency=1,pulse=0,monkey="search index"' my-service`
    pub fn overrides_from_env(mut self, variable: &str) -> Builder {
        let text = match std::env::var(variable) {
            Ok(text) => Ok(text),
            Err(std::env::VarError::NotPresent) => return self,
            Err(std::env::VarError::NotUnicode(value)) => Err(ConfigError::value(format!(
                "{variable}: {}; allowed: valid Unicode",
                value.to_string_lossy()
            ))),
        };
        self.overrides.push(Override { origin: variable.to_owned(), text });
        self
    }

    /// [`Governor::ready`] is said when this future resolves. It is spawned with the first task. If it panics,
    /// ready is not given, and the timeout opens the gate. Implies [`await_ready`](Builder::await_ready).
    pub fn ready_when(mut self, ready: impl Future<Output = ()> + Send + 'static) -> Builder {
        self.signals.ready = Some(Box::pin(ready));
        self.await_ready()
    }

    /// The gate opens when this future resolves, in the place of the quiet window. It is spawned with the first
    /// task. If it fails, panics or is dropped, the quiet window takes over and the report says so; the timeout
    /// bounds both.
    pub fn interactive_when<F>(mut self, interactive: F) -> Builder
    where
        F: Future + Send + 'static,
        F::Output: TaskOutput<Value = ()>,
    {
        // Not awaited: it would be dropped before its answer is out, and its destructor may panic.
        let mut interactive = Box::pin(interactive);
        let answer = poll_fn(move |cx| interactive.as_mut().poll(cx).map(TaskOutput::settle));
        self.signals.interactive = Some(Box::pin(answer));
        self.gate.interactive = true;
        self
    }

    /// The quiet window begins only at [`Governor::ready`]. Without it, it begins at the first idle task, and
    /// `ready` begins it anew.
    pub fn await_ready(mut self) -> Builder {
        self.gate.await_ready = true;
        self
    }

    /// How long no long task may have been seen, and not too much in flight, before idle tasks may start.
    /// Default 5 s, as in Google's tti-polyfill ("first consistently interactive"); at most the timeout. Below
    /// 60 ms a stall in progress may not have been noticed yet.
    pub fn quiet(mut self, window: Duration) -> Builder {
        self.gate.quiet = window;
        self
    }

    /// When the gate opens even if the application was never quiet, counted from the first idle task. Default
    /// 45 s, as in the web mail client whose governor has one; more than 0, at most 24 hours.
    pub fn gate_timeout(mut self, timeout: Duration) -> Builder {
        self.gate.gate_timeout = timeout;
        self
    }

    /// The most requests in flight at which the application still counts as quiet. Default 2, as in Google's
    /// tti-polyfill. A server under load always has more: give what is usual for it.
    pub fn max_in_flight(mut self, requests: usize) -> Builder {
        self.gate.max_in_flight = requests;
        self
    }

    /// After the opening: an idle start is held while the application had a long task, or too much in flight,
    /// within this time; at most [`max_hold`](Builder::max_hold) a start. Each hold stands in the report. Tasks that
    /// run are left alone. Default 500 ms, as Chromium waits for quiet while a page loads; 0 never holds.
    pub fn resume_quiet(mut self, quiet: Duration) -> Builder {
        self.gate.resume_quiet = quiet;
        self
    }

    /// How long normal tasks may keep the idle queue from every slot once the gate is open, and how long a busy
    /// application may hold one idle start. After the first the governor demands the first idle task itself, one at
    /// a time, and the report says so. Default 5 s.
    pub fn max_hold(mut self, hold: Duration) -> Builder {
        self.gate.max_hold = hold;
        self
    }

    /// Watches observed futures from a thread of its own while an idle task waits: it sees the future in `block_on`
    /// too, which is no worker's, and a poll that is still going on. Off by default: it costs a thread, and under a
    /// paused clock it sees nothing. See [`Governor::observe`].
    pub fn sampler(mut self) -> Builder {
        self.samples = true;
        self
    }

    /// Keeps when each task was polled and for how long: up to 64 segments a task, then neighbours are merged. For
    /// the page and for trying other profiles on a recorded run. Default off; costs up to 3 KB a task.
    pub fn record_segments(mut self) -> Builder {
        self.segments = true;
        self
    }

    /// How long one governed poll may hold the lane on a multi_thread runtime. Then its task is named in a
    /// warning and gives up its slot, and the lane goes on without it on a thread of the blocking pool, until the
    /// poll returns; where that has no thread, the lane waits for the poll, and the report says so. Default 1 s, real time; at least 10 ms. On a current_thread runtime nothing can run
    /// meanwhile: the warning comes when the poll returns.
    pub fn stuck_after(mut self, limit: Duration) -> Builder {
        self.stuck_after = limit;
        self
    }

    /// Makes the governor. Nothing is spawned before the first task.
    ///
    /// # Errors
    /// [`ConfigError`] names every bad field with its value and what is allowed, and says so where there is no
    /// runtime.
    ///
    /// # Panics
    /// Not here; but on a runtime without timers the first wait panics inside tokio, in tokio's own words
    /// ("enable_time").
    pub fn build(self) -> Result<Governor, ConfigError> {
        let Builder {
            name,
            mut profile,
            gate,
            monkey,
            seed,
            runtime,
            signals,
            overrides,
            stuck_after,
            segments,
            samples,
        } = self;
        if monkey.is_some() {
            profile.monkey = monkey;
        }
        let mut problems = Vec::new();
        for Override { origin, text } in overrides {
            let set = text.and_then(|text| profile.set(&text).map_err(|error| error.within(&origin)));
            problems.extend(set.err());
        }
        problems.extend(plan::check(&name, &profile, &gate, stuck_after).err());
        let runtime = runtime.map_or_else(Handle::try_current, Ok);
        if runtime.is_err() {
            problems.push(ConfigError::no_runtime());
        }
        ConfigError::all(problems)?;
        let Ok(runtime) = runtime else { return Err(ConfigError::no_runtime()) };
        let seed = seed.unwrap_or_else(random_seed);
        let limits = Limits { stuck_after, samples };
        let mut core = Core::new(profile, gate, seed);
        if segments {
            core.record_segments();
        }
        Ok(Governor::new(Arc::new(Shared::new(name, runtime, core, signals, limits, start))))
    }
}

/// A machine without randomness gets a fixed seed: a boot must not fail for that, and the report shows it.
fn random_seed() -> u64 {
    SysRng.try_next_u64().unwrap_or(0)
}
