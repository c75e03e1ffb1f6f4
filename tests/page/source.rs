//! The page's text: it stands alone, and carries the report.

use afterboot::Report;
use serde_json::Value;

use crate::reports::{boot, changed};
use crate::tab::open;

fn data(html: &str) -> &str {
    let (_, rest) = html.split_once(r#"<script type="application/json" id="data">"#).expect("it has data");
    rest.split_once("</script>").expect("the data ends").0
}

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let html = boot().to_html();
    for reference in ["http:", "https:", "src=", "href=", "url(//", "@import", "import(", "fetch(", "{{"] {
        assert!(!html.contains(reference), "{reference}");
    }
    let policy = "content=\"default-src 'none'; style-src 'sha256-";
    assert!(html.contains(policy), "the policy is gone");
    assert!(!html.contains("unsafe-inline"));
    for script in
        [".innerHTML", ".outerHTML", "insertAdjacentHTML", "document.write", "eval(", "setAttribute(\"on"]
    {
        assert!(!html.contains(script), "{script}");
    }
}

#[test]
fn the_whole_report_can_be_read_back_out_of_the_page() {
    let report = changed(&boot(), |json| json["governor"] = "</script>\u{2028}\u{2029}<!-- &amp; \"'".into());
    let html = report.to_html();
    let text = data(&html);
    for c in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        assert!(!text.contains(c), "{c:?}");
    }
    let json: Value = serde_json::from_str(text).expect("it is JSON");
    assert_eq!(serde_json::from_value::<Report>(json["report"].clone()).expect("it is a report"), report);
    assert!(json["report"]["taken"]["nanos"].is_u64(), "durations are secs and nanos");
}

#[test]
fn the_four_sentences_stand_in_the_page_and_need_no_script() {
    let report = boot();
    let mut tab = open(&report);
    assert_eq!(tab.texts_of(".story p"), report.headlines());
    assert_eq!(tab.texts_of(".story h2").len(), 4);
    let html = report.to_html();
    let (head, _) = html.split_once("<script").expect("it has scripts");
    assert_eq!(head.matches("<li><h2>").count(), 4);
}
