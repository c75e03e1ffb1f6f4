//! What the application itself counts.

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::base::clock::Stamp;

/// How many are kept.
const KEPT: usize = 1_000;

/// Name, whether it went well, when.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    kept: VecDeque<(Cow<'static, str>, bool, Stamp)>,
    forgotten: u64,
}

impl Outcomes {
    pub(super) fn push(&mut self, name: Cow<'static, str>, ok: bool, now: Stamp) {
        if self.kept.len() == KEPT {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back((name, ok, now));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Cow<'static, str>, bool, Stamp)> {
        self.kept.iter()
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
