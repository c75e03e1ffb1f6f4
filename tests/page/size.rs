//! Large runs open.

use crate::reports::{boot, many};
use crate::tab::open;

/// What there is after ten seconds is there for somebody who has gone.
const PATIENCE_MS: f64 = 10_000.0;

#[test]
fn ten_thousand_tasks_open_within_ten_seconds_in_pages_of_a_thousand() {
    let report = many(10_000);
    let mut tab = open(&report);
    let took = tab.number("performance.now()");
    assert!(took < PATIENCE_MS, "{took} ms for {} KB", report.to_html().len() / 1024);
    assert_eq!(tab.number("document.querySelectorAll('#bars .row').length"), 1000.0);
    assert_eq!(tab.number("document.querySelectorAll('#table tbody tr').length"), 1000.0);
    for nav in ["waterfall-pages", "table-pages"] {
        let place = format!("#{nav} span");
        assert_eq!(tab.texts_of(&place), ["1 to 1000 of 10000"]);
        tab.eval(&format!("document.querySelector('#{nav} button:last-child').click()"));
        assert_eq!(tab.texts_of(&place), ["1001 to 2000 of 10000"]);
    }
    assert_eq!(tab.text("document.querySelector('#table tbody td').textContent"), "1000");
    // Everything can be found, wherever it stands.
    tab.eval("document.getElementById('search').focus()");
    tab.type_text("task 9876");
    tab.settle();
    assert_eq!(tab.texts_of("#names bdi"), ["task 9876"]);
}

#[test]
fn a_few_hundred_tasks_stand_on_one_page() {
    let mut tab = open(&many(300));
    assert_eq!(tab.number("document.querySelectorAll('#bars .row').length"), 300.0);
    assert_eq!(tab.number("document.querySelectorAll('.pages > *').length"), 0.0);
    // Readable: no name lower than its letters.
    assert!(tab.number("document.querySelector('#names div').offsetHeight") >= 14.0);
}

#[test]
fn a_narrow_window_is_not_wider_than_itself() {
    let mut tab = open(&boot());
    tab.resize(420, 800);
    tab.settle();
    assert!(tab.number("document.documentElement.scrollWidth") <= 420.0);
}
