//! The profile: concurrency, delay, pulse and monkey, with a text form for configuration.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::model::error::ConfigError;
use crate::model::monkey::Monkey;

/// The rate limits of a governor: how many tasks may run at once, when the first one starts, and the pause between two
/// starts.
///
/// The defaults (3, 1 ms, 1 ms) are those of the startup governor of a large web mail client.
///
/// A profile has a text form for configuration files, flags and environment variables: `key=value` pairs separated by
/// commas. The units `ns`, `us`, `ms` and `s` are supported; a number without a unit is in milliseconds. Missing keys
/// keep their default.
///
/// ```
/// use afterboot::Profile;
/// let profile: Profile = "concurrency=1,pulse=20ms,monkey=\"search index\"".parse()?;
/// assert_eq!(profile.to_string(), "concurrency=1,delay=1ms,pulse=20ms,monkey=\"search index\",monkey_delay=60s");
///
/// let error = "concurrency=0".parse::<Profile>().unwrap_err();
/// assert_eq!(error.to_string(), "concurrency: 0; allowed: 1 to 1024");
/// # Ok::<(), afterboot::ConfigError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub(crate) concurrency: usize,
    pub(crate) delay: Duration,
    pub(crate) pulse: Duration,
    pub(crate) monkey: Option<Monkey>,
}

/// The largest concurrency that a profile may ask for.
pub(crate) const MAX_CONCURRENCY: usize = 1024;

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            concurrency: 3,
            delay: Duration::from_millis(1),
            pulse: Duration::from_millis(1),
            monkey: None,
        }
    }
}

impl Profile {
    /// Sets the maximum number of running tasks over both queues, including tasks that are awaiting something. 1 to
    /// 1024. Default: 3.
    ///
    /// Demanded tasks may exceed the limit. They are counted, so the next ordinary start waits.
    pub fn concurrency(mut self, tasks: usize) -> Profile {
        self.concurrency = tasks;
        self
    }

    /// Sets the time from the first declaration to the first start. 0 is allowed. Default: 1 ms.
    pub fn delay(mut self, delay: Duration) -> Profile {
        self.delay = delay;
        self
    }

    /// Sets the pause between two starts: a task starts no earlier than this after the end of the first poll of the
    /// previously started one. With 0, each start still takes one tick of the event loop. Default: 1 ms.
    ///
    /// tokio's timers have a resolution of one millisecond and round up, so a pulse of 1 ms takes about 2 ms per start.
    pub fn pulse(mut self, pulse: Duration) -> Profile {
        self.pulse = pulse;
        self
    }

    /// Delays one task on purpose; see [`Monkey`]. Default: none.
    pub fn monkey(mut self, monkey: Monkey) -> Profile {
        self.monkey = Some(monkey);
        self
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if (1..=MAX_CONCURRENCY).contains(&self.concurrency) {
            return Ok(());
        }
        Err(ConfigError::value(format!("concurrency: {}; allowed: 1 to {MAX_CONCURRENCY}", self.concurrency)))
    }

    /// Sets the keys in the text and leaves the others. If any pair is invalid, all invalid ones are reported and
    /// nothing is set.
    pub(crate) fn set(&mut self, text: &str) -> Result<(), ConfigError> {
        let mut changed = self.clone();
        let mut monkey_delay = None;
        let mut problems = Vec::new();
        for pair in pairs(text) {
            if let Err(problem) = changed.set_pair(pair, &mut monkey_delay) {
                problems.push(ConfigError::value(problem));
            }
        }
        match (&mut changed.monkey, monkey_delay) {
            (Some(monkey), Some(delay)) => monkey.delay = delay,
            (None, Some(_)) => {
                let problem = "monkey_delay: given without a monkey; allowed: together with `monkey=`";
                problems.push(ConfigError::value(problem.to_owned()));
            }
            (_, None) => {}
        }
        ConfigError::all(problems)?;
        *self = changed;
        Ok(())
    }

    fn set_pair(&mut self, pair: &str, monkey_delay: &mut Option<Duration>) -> Result<(), String> {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            format!("{pair}: no `=`; allowed: pairs of the form key=value, with commas between")
        })?;
        let (key, value) = (key.trim(), value.trim());
        match key {
            "concurrency" => {
                self.concurrency = value
                    .parse()
                    .ok()
                    .filter(|n| (1..=MAX_CONCURRENCY).contains(n))
                    .ok_or_else(|| format!("concurrency: {value}; allowed: 1 to {MAX_CONCURRENCY}"))?;
            }
            "delay" => self.delay = duration(key, value)?,
            "pulse" => self.pulse = duration(key, value)?,
            "monkey" => self.monkey = Some(monkey(value)?),
            "monkey_delay" => *monkey_delay = Some(duration(key, value)?),
            _ => {
                return Err(format!(
                    "{key}: no such key; allowed: concurrency, delay, pulse, monkey, monkey_delay"
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Profile {
    type Err = ConfigError;

    /// # Errors
    /// Returns a [`ConfigError`] that lists each invalid key with its value and the allowed values.
    fn from_str(text: &str) -> Result<Profile, ConfigError> {
        let mut profile = Profile::default();
        profile.set(text)?;
        Ok(profile)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Profile { concurrency, delay, pulse, monkey } = self;
        write!(f, "concurrency={concurrency},delay={delay:?},pulse={pulse:?}")?;
        match monkey {
            Some(monkey) => write!(f, ",{monkey}"),
            None => Ok(()),
        }
    }
}

/// The text between commas that do not stand inside quotes; empty pieces are left out.
fn pairs(text: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |c| {
        let toggles = c == '"' && !escaped;
        escaped = c == '\\' && quoted && !escaped;
        quoted ^= toggles;
        c == ',' && !quoted
    })
    .map(str::trim)
    .filter(|pair| !pair.is_empty())
}

fn duration(key: &str, value: &str) -> Result<Duration, String> {
    let bad = || {
        format!(
            "{key}: {value}; allowed: a time such as 20, 20ms, 1.5s or 250us (a bare number is milliseconds)"
        )
    };
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let unit = match &value[digits.len()..] {
        "" | "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "ns" => 1e-9,
        "s" => 1.0,
        _ => return Err(bad()),
    };
    // As a float it would be rounded up to what no duration can hold; `Display` writes it.
    if value == format!("{:?}", Duration::MAX) {
        return Ok(Duration::MAX);
    }
    let number: f64 = digits.trim().parse().map_err(|_| bad())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| bad())
}

fn monkey(value: &str) -> Result<Monkey, String> {
    let bad = || {
        format!(
            "monkey: {value}; allowed: random, #N (the N-th declared task, from 0) or a task's name in quotes"
        )
    };
    let delay = Monkey::DEFAULT_DELAY;
    if value == "random" {
        return Ok(Monkey::random(delay));
    }
    if let Some(index) = value.strip_prefix('#') {
        return index.parse().map(|index| Monkey::index(index, delay)).map_err(|_| bad());
    }
    let Some(inside) = value.strip_prefix('"') else {
        return if value.is_empty() || value.contains('"') {
            Err(bad())
        } else {
            Ok(Monkey::task(value.to_owned(), delay))
        };
    };
    let mut name = String::new();
    let mut chars = inside.chars();
    loop {
        match chars.next() {
            Some('\\') => name.extend(chars.next()),
            Some('"') if chars.as_str().is_empty() => return Ok(Monkey::task(name, delay)),
            Some('"') | None => return Err(bad()),
            Some(c) => name.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn zero_is_zero_and_not_the_default() {
        let profile: Profile = "delay=0,pulse=0,monkey=#0".parse().unwrap();
        assert_eq!(profile.delay, Duration::ZERO);
        assert_eq!(profile.pulse, Duration::ZERO);
        assert_eq!(profile.monkey, Some(Monkey::index(0, Monkey::DEFAULT_DELAY)));
    }

    #[test]
    fn every_bad_pair_is_named_with_its_value_and_what_is_allowed() {
        let error = "concurrency=1025, delay=-1, pulse=1h, colour=red, monkey=#x, alone"
            .parse::<Profile>()
            .unwrap_err();
        let text = error.to_string();
        for part in [
            "concurrency: 1025; allowed: 1 to 1024",
            "delay: -1;",
            "pulse: 1h;",
            "colour: no such key;",
            "monkey: #x;",
            "alone: no `=`",
        ] {
            assert!(text.contains(part), "{part:?} is missing in {text}");
        }
        assert_eq!(error.problems().len(), 6);
    }

    #[test]
    fn a_bad_text_changes_nothing() {
        let mut profile = Profile::default();
        profile.set("concurrency=9,pulse=soon").unwrap_err();
        assert_eq!(profile, Profile::default());
    }

    #[test]
    fn a_monkeys_name_may_hold_commas_quotes_and_equals_signs() {
        let profile: Profile = r#"monkey="a, \"b\" = c",concurrency=2"#.parse().unwrap();
        assert_eq!(profile.monkey, Some(Monkey::task(r#"a, "b" = c"#, Monkey::DEFAULT_DELAY)));
        assert_eq!(profile.concurrency, 2);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused_without_a_panic(text in ".{0,60}") {
            drop(text.parse::<Profile>());
        }

        #[test]
        fn what_is_printed_parses_back(
            concurrency in 1usize..=1024,
            delay in 0u64..10_000,
            pulse in 0u64..10_000,
            name in proptest::option::of("[^\\p{C}]{1,20}"),
        ) {
            let mut profile = Profile::default()
                .concurrency(concurrency)
                .delay(Duration::from_millis(delay))
                .pulse(Duration::from_micros(pulse));
            profile.monkey = name.map(|name| Monkey::task(name, Duration::from_secs(2)));
            prop_assert_eq!(profile.to_string().parse::<Profile>().unwrap(), profile);
        }
    }
}
