//! Where no process is forked off another, the lock on `lock` is all there is.

use std::fs::File;
use std::path::Path;

pub(super) const MADE: &[&str] = &[];

#[derive(Debug)]
pub(super) struct Owned;

impl Owned {
    pub(super) fn by_lock(_: &Path, _: &File) -> Option<Owned> {
        Some(Owned)
    }

    pub(super) fn inherited(_: &Path, _: &File) -> Option<Owned> {
        None
    }

    pub(super) fn let_go(&mut self, _: &Path, _: &File, _: bool) {}
}

#[derive(Debug)]
pub(super) struct Turn;

pub(super) fn turn() -> Option<Turn> {
    Some(Turn)
}

pub(super) fn is_ours(_: &File) -> bool {
    false
}
