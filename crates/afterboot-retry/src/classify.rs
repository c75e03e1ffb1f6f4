//! What an answer's code means for a poll: end, skip, wait how long, give up.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::PolicyError;
use crate::policy::FIBONACCI;

/// What to do about each code. Codes are HTTP's; 0 stands for no answer at all.
///
/// Asked in this order: **end**, **skip**, **table exhausted** (ten failures in a row give up for any code),
/// **Fibonacci** (0 1 1 2 3 5 8 13 21 34 s), **fixed** wait for the code, **give up**. A limit for a single code is kept
/// by [`Classifier`], which counts.
///
/// The defaults are those of Facebook's live player: 410 ends; 504 waits by the table; 0 waits 1 s, 404 2 s, 502, 503
/// and 504 1 s; every other code gives up. Nothing is skipped. Floor and limit of a skip, 250 ms and 10, are ours: the
/// player skipped at once and for ever, which spins where every answer is one to skip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "CodeRulesBuilder", into = "CodeRulesBuilder"))]
pub struct CodeRules(CodeRulesBuilder);

/// [`CodeRules`] in the making. Setters store; [`build`](CodeRulesBuilder::build) checks.
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
    /// Codes that say there will be nothing more. Default: 410.
    pub fn end(mut self, codes: impl IntoIterator<Item = u16>) -> CodeRulesBuilder {
        self.end = codes.into_iter().collect();
        self
    }

    /// Codes that are passed over: the next fetch follows after the floor. Default: none.
    pub fn skip(mut self, codes: impl IntoIterator<Item = u16>) -> CodeRulesBuilder {
        self.skip = codes.into_iter().collect();
        self
    }

    /// The wait after a skip. Default: 250 ms; must be above 0.
    pub fn skip_floor(mut self, floor: Duration) -> CodeRulesBuilder {
        self.skip_floor = floor;
        self
    }

    /// How many failures in a row may go by before a code to skip gives up. Default: 10.
    pub fn skip_limit(mut self, limit: u32) -> CodeRulesBuilder {
        self.skip_limit = limit;
        self
    }

    /// Codes that wait by the table. Default: 504.
    pub fn fibonacci(mut self, codes: impl IntoIterator<Item = u16>) -> CodeRulesBuilder {
        self.fibonacci = codes.into_iter().collect();
        self
    }

    /// Adds a code that waits this many milliseconds each time. 1 or more.
    pub fn fixed(mut self, code: u16, millis: u64) -> CodeRulesBuilder {
        self.fixed.insert(code, millis);
        self
    }

    /// Gives up at the n-th answer of this code since the last success. 1 or more. Default: no limit for any code.
    pub fn limit(mut self, code: u16, answers: u32) -> CodeRulesBuilder {
        self.limits.insert(code, answers);
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// Names every bad field: a floor or a fixed wait of zero, a limit of zero.
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

/// What to do about an answer that is not the one hoped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CodeAction {
    /// There will be nothing more.
    End,
    /// Fetch again after this time.
    Retry {
        /// The time to wait.
        #[cfg_attr(feature = "serde", serde(rename = "after_ms", with = "crate::millis"))]
        after: Duration,
    },
    /// No more.
    GiveUp(CodeGiveUp),
}

/// Why a code gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum CodeGiveUp {
    /// No rule speaks of the code.
    Unlisted,
    /// The table is exhausted: ten failures in a row.
    Exhausted,
    /// As many codes to skip in a row as allowed.
    SkipLimit,
    /// As many answers of this code as its limit says.
    CodeLimit,
}

impl CodeRules {
    /// Rules of one's own, starting from the defaults.
    pub fn builder() -> CodeRulesBuilder {
        CodeRulesBuilder::default()
    }

    /// What to do about `code` after `attempt` failures in a row that were retried; 0 for the first failure.
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

/// [`CodeRules`] with the counters of one poll: failures in a row, and answers of each code that has a limit.
#[derive(Debug, Clone, Default)]
pub struct Classifier {
    rules: CodeRules,
    attempt: u32,
    answers: BTreeMap<u16, u32>,
}

impl Classifier {
    /// No failures yet.
    pub fn new(rules: CodeRules) -> Classifier {
        Classifier { rules, ..Classifier::default() }
    }

    /// A fetch gave this code. The limit of a single code comes right after **end**.
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

    /// A fetch succeeded: all counters start over.
    pub fn on_success(&mut self) {
        self.attempt = 0;
        self.answers.clear();
    }

    /// Failures in a row that were retried.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }
}
