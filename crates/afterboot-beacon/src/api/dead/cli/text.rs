use std::fmt::Write;

/// Untrusted text on one line of a terminal: what would move the cursor, change the order of what is read or
/// hide is written as `\u{..}`, and a backslash is doubled, so that no text looks like another's escape.
pub(super) fn safe(text: &str) -> String {
    visible(&text.replace('\\', "\\\\"))
}

/// The same for a message, in which values are quoted and escaped already.
pub(super) fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match is_unsafe(char) {
            true => out.extend(char.escape_unicode()),
            false => out.push(char),
        }
    }
    out
}

/// The same for JSON, which stays the same JSON: such characters stand only in its strings, but for line breaks and
/// tabs between them.
pub(super) fn safe_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '\n' | '\t' | '\r' => out.push(' '),
            char if is_unsafe(char) => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            char => out.push(char),
        }
    }
    out
}

fn is_unsafe(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Milliseconds since the epoch as a date in UTC.
pub(super) fn date(at: u64) -> String {
    let (days, ms) = (at / 86_400_000, at % 86_400_000);
    // Howard Hinnant's civil_from_days: years begin in March, so that the leap day is the last one.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", ms % 1000)
}
