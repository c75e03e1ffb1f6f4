//! Maps response codes to the action of a poll: end, skip, retry after a wait, give up.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::PolicyError;
use crate::policy::FIBONACCI;

/// The action for each response code. Codes are those of HTTP; 0 means that there was no response.
///
/// Rules are evaluated in this order: **end**, **skip**, **table exhausted** (ten failures in a row give up for any code),
/// **Fibonacci** (0 1 1 2 3 5 8 13 21 34 s), **fixed** wait for the code, **give up**. Limits for single codes are
/// enforced by [`Classifier`], which counts.
///
/// The defaults are those of Facebook's live player: 410 ends; 504 waits by the table; 0 waits 1 s, 404 2 s, 502, 503
/// and 504 1 s; every other code gives up. Nothing is skipped. The floor and the limit of a skip, 250 ms and 10, are this
/// crate's: the player skips immediately and without a limit, which spins if every response is to be skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "CodeRulesBuilder", into = "CodeRulesBuilder"))]
pub struct CodeRules(CodeRulesBuilder);

/// Builds [`CodeRules`]. Setters store; [`build`](CodeRulesBuilder::build) validates.
#[must_use = "a builder does nothing until `build` is called"]
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct CodeRulesBuilder {
    end: Vec<u16>,
    skip: Vec<u16>,
    #[cfg_attr(feature = "serde", serde(rename = "skip_floor_ms", with = "crate::millis"))]
    skip_floor: Duration,
    skip_limit: u32,
    fibonacci: Vec<u16>,
    #[cfg_attr(feature = "serde", serde(rename = "fixed_ms"))]
    fixed: BTreeMap<u16, u64>,
    limits: BTreeMap<u16, u32>,
}

impl Default for CodeRulesBuilder {
    fn default() -> CodeRulesBuilder {
        CodeRulesBuilder {
            end: vec![410],
            skip: Vec::new(),
            skip_floor: Duration::from_millis(250),
            skip_limit: 10,
            fibonacci: vec![504],
            fixed: BTreeMap::from([(0, 1000), (404, 2000), (502, 1000), (503, 1000), (504, 1000)]),
            limits: BTreeMap::new(),
        }
    }
}

impl CodeRulesBuilder {
    /// Sets the codes that end the poll. Default: 410.
    pub fn end(mut self, codes: impl IntoIterator<Item = u16>) -> CodeRulesBuilder {
        self.end = codes.into_iter().collect();
        self
    }

    /// Sets the codes that are skipped: the next fetch follows after the floor. Default: none.
    pub fn skip(mut self, codes: impl IntoIterator<Item = u16>) -> CodeRulesBuilder {
        self.skip = codes.into_iter().collect();
        self
    }

    /// Sets the wait after a skip. Default: 250 ms; must be above 0.
    pub fn skip_floor(mut self, floor: Duration) -> CodeRulesBuilder {
        self.skip_floor = floor;
        self
    }

    /// Sets after how many consecutive failures a code to skip gives up. Default: 10.
    pub fn skip_limit(mut self, limit: u32) -> CodeRulesBuilder {
        self.skip_limit = limit;
        self
    }

    /// Sets the codes that wait by the Fibonacci table. Default: 504.
    pub fn fibonacci(mut self, codes: impl IntoIterator<Item = u16>) -> CodeRulesBuilder {
        self.fibonacci = codes.into_iter().collect();
        self
    }

    /// Adds a code with a fixed wait in milliseconds. 1 or more.
    pub fn fixed(mut self, code: u16, millis: u64) -> CodeRulesBuilder {
        self.fixed.insert(code, millis);
        self
    }

    /// Gives up at the n-th response with this code since the last success. 1 or more. Default: no limit for any code.
    pub fn limit(mut self, code: u16, answers: u32) -> CodeRulesBuilder {
        self.limits.insert(code, answers);
        self
    }

    /// Validates all fields.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] lists every invalid field: a floor or a fixed wait of zero, a limit of zero.
    pub fn build(self) -> Result<CodeRules, PolicyError> {
        let mut problems = Vec::new();
        if self.skip_floor.is_zero() {
            problems.push("skip_floor: 0ns; allowed: above 0, or skipping would spin".to_owned());
        }
        for (code, _) in self.fixed.iter().filter(|(_, millis)| **millis == 0) {
            problems.push(format!("fixed.{code}: 0; allowed: 1 ms or more, or retrying would spin"));
        }
        for (code, _) in self.limits.iter().filter(|(_, answers)| **answers == 0) {
            problems.push(format!("limits.{code}: 0; allowed: 1 or more"));
        }
        PolicyError::unless_empty(problems).map(|()| CodeRules(self))
    }
}

/// What to do about a failed fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CodeAction {
    /// The poll has ended: there will be no further answers.
    End,
    /// Fetch again after a wait.
    Retry {
        /// The time to wait.
        #[cfg_attr(feature = "serde", serde(rename = "after_ms", with = "crate::millis"))]
        after: Duration,
    },
    /// Stop polling.
    GiveUp(CodeGiveUp),
}

/// Why [`CodeAction::GiveUp`] was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CodeGiveUp {
    /// No rule covers the code.
    Unlisted,
    /// The table is exhausted: ten consecutive failures.
    Exhausted,
    /// The limit of consecutive skips was reached.
    SkipLimit,
    /// The limit for this code was reached.
    CodeLimit,
}

impl CodeRules {
    /// Returns a builder that starts from the defaults.
    pub fn builder() -> CodeRulesBuilder {
        CodeRulesBuilder::default()
    }

    /// Returns the action for `code` after `attempt` consecutive failures that were retried; 0 for the first failure.
    ///
    /// ```
    /// use std::time::Duration;
    /// use afterboot_retry::{CodeAction, CodeRules};
    ///
    /// let rules = CodeRules::default();
    /// assert_eq!(rules.classify(410, 0), CodeAction::End);
    /// assert_eq!(rules.classify(504, 6), CodeAction::Retry { after: Duration::from_secs(8) });
    /// assert_eq!(rules.classify(404, 6), CodeAction::Retry { after: Duration::from_secs(2) });
    /// ```
    pub fn classify(&self, code: u16, attempt: u32) -> CodeAction {
        let rules = &self.0;
        if rules.end.contains(&code) {
            return CodeAction::End;
        }
        if rules.skip.contains(&code) {
            return if attempt < rules.skip_limit {
                CodeAction::Retry { after: rules.skip_floor }
            } else {
                CodeAction::GiveUp(CodeGiveUp::SkipLimit)
            };
        }
        let Some(by_table) = usize::try_from(attempt).ok().and_then(|n| FIBONACCI.get(n)) else {
            return CodeAction::GiveUp(CodeGiveUp::Exhausted);
        };
        if rules.fibonacci.contains(&code) {
            return CodeAction::Retry { after: *by_table };
        }
        match rules.fixed.get(&code) {
            Some(millis) => CodeAction::Retry { after: Duration::from_millis(*millis) },
            None => CodeAction::GiveUp(CodeGiveUp::Unlisted),
        }
    }
}

impl TryFrom<CodeRulesBuilder> for CodeRules {
    type Error = PolicyError;

    fn try_from(builder: CodeRulesBuilder) -> Result<CodeRules, PolicyError> {
        builder.build()
    }
}

impl From<CodeRules> for CodeRulesBuilder {
    fn from(rules: CodeRules) -> CodeRulesBuilder {
        rules.0
    }
}

/// [`CodeRules`] with the counters of one poll: consecutive failures, and responses of each code that has a limit.
#[derive(Debug, Clone, Default)]
pub struct Classifier {
    rules: CodeRules,
    attempt: u32,
    answers: BTreeMap<u16, u32>,
}

impl Classifier {
    /// Creates a classifier with all counters at zero.
    pub fn new(rules: CodeRules) -> Classifier {
        Classifier { rules, ..Classifier::default() }
    }

    /// Records a failed fetch and returns the action. The limit of a single code is evaluated right after **end**.
    pub fn on_failure(&mut self, code: u16) -> CodeAction {
        let action = self.rules.classify(code, self.attempt);
        if action != CodeAction::End
            && let Some(limit) = self.rules.0.limits.get(&code)
        {
            let answers = self.answers.entry(code).or_default();
            *answers = answers.saturating_add(1);
            if *answers >= *limit {
                return CodeAction::GiveUp(CodeGiveUp::CodeLimit);
            }
        }
        if matches!(action, CodeAction::Retry { .. }) {
            self.attempt = self.attempt.saturating_add(1);
        }
        action
    }

    /// Records a successful fetch: resets all counters.
    pub fn on_success(&mut self) {
        self.attempt = 0;
        self.answers.clear();
    }

    /// Returns the number of consecutive failures that were retried.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}
