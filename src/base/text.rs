//! Untrusted text on one line: names, errors and labels come from anywhere.

use std::fmt::{self, Write};

/// A column holds a character of four bytes with a mark or two: more is no writing of anybody's.
const BYTES_A_COLUMN: usize = 12;

/// The text in at most so many columns, and in at most [`BYTES_A_COLUMN`] bytes for each: marks have no width. Control characters and marks that turn the direction are shown as `?`; what
/// is cut ends in an ellipsis.
pub(crate) struct Plain<'a>(pub(crate) &'a str, pub(crate) usize);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plain(text, limit) = *self;
        let most = limit.saturating_mul(BYTES_A_COLUMN);
        if text.len() <= most && text.chars().map(columns).sum::<usize>() <= limit {
            return text.chars().try_for_each(|c| f.write_char(shown(c)));
        }
        let mut left = limit.saturating_sub(1);
        for (at, c) in text.char_indices() {
            if at + c.len_utf8() > most {
                break;
            }
            match left.checked_sub(columns(c)) {
                Some(rest) => left = rest,
                None => break,
            }
            f.write_char(shown(c))?;
        }
        f.write_char('…')
    }
}

/// The same, filled up with spaces.
pub(crate) struct Padded<'a>(pub(crate) &'a str, pub(crate) usize);

impl fmt::Display for Padded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Padded(text, limit) = *self;
        let shown = Plain(text, limit).to_string();
        let used: usize = shown.chars().map(columns).sum();
        write!(f, "{shown}{:rest$}", "", rest = limit.saturating_sub(used))
    }
}

fn shown(c: char) -> char {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    if c.is_control() || turns { '?' } else { c }
}

/// The columns a terminal gives a character: two for the wide ranges of East Asian scripts and emoji, none for
/// combining marks. The ranges are those of Unicode's East Asian Width, without their gaps.
fn columns(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{a960}'..='\u{a97f}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// I20
    #[test]
    fn hostile_text_cannot_move_the_cursor_or_turn_the_line() {
        assert_eq!(Plain("a\x1b[2Jb\u{202e}c\nd\u{61c}", 40).to_string(), "a?[2Jb?c?d?");
        assert_eq!(Plain("äöüß", 3).to_string(), "äö…");
        assert_eq!(Plain("索引作成", 5).to_string(), "索引…");
        let marks = "\u{301}".repeat(10_000);
        assert!(Plain(&marks, 26).to_string().len() <= 26 * BYTES_A_COLUMN + "…".len());
        assert_eq!(Padded("äö", 4).to_string(), "äö  ");
        assert_eq!(Padded("索引作成", 6).to_string(), "索引… ");
    }

    proptest! {
        /// I20
        #[test]
        fn padded_text_always_fills_its_columns(text in ".{0,40}", limit in 1_usize..30) {
            let shown = Padded(&text, limit).to_string();
            prop_assert_eq!(shown.chars().map(columns).sum::<usize>(), limit);
            prop_assert!(shown.chars().all(shown_is_harmless), "{:?}", shown);
        }
    }

    fn shown_is_harmless(c: char) -> bool {
        shown(c) == c
    }
}
