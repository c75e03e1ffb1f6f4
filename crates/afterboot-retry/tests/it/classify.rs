//! What a code means for a poll.

use afterboot_retry::{Classifier, CodeAction, CodeGiveUp, CodeRules};

use crate::common::{ms, s};

const fn after(millis: u64) -> CodeAction {
    CodeAction::Retry { after: ms(millis) }
}

#[test]
fn the_default_rules_are_the_published_ones() {
    let rules = CodeRules::default();
    let by_table: Vec<CodeAction> = (0..10).map(|attempt| rules.classify(504, attempt)).collect();
    let expected = [0, 1000, 1000, 2000, 3000, 5000, 8000, 13_000, 21_000, 34_000].map(after);
    assert_eq!(by_table, expected);
    for (code, millis) in [(0, 1000), (404, 2000), (502, 1000), (503, 1000)] {
        assert_eq!(
            (rules.classify(code, 0), rules.classify(code, 9)),
            (after(millis), after(millis)),
            "{code}"
        );
    }
    assert_eq!(rules.classify(410, 0), CodeAction::End);
    assert_eq!(rules.classify(418, 0), CodeAction::GiveUp(CodeGiveUp::Unlisted));
}

#[test]
fn rules_are_asked_in_a_fixed_order() {
    // Every list holds the code: taking the first away shows the second.
    let all = || CodeRules::builder().fibonacci([500]).fixed(500, 77).skip([500]).end([500]);
    let ended = |attempt| all().build().unwrap().classify(500, attempt);
    assert_eq!((ended(0), ended(10)), (CodeAction::End, CodeAction::End));
    let skipped = |attempt| all().end([]).skip_limit(20).build().unwrap().classify(500, attempt);
    assert_eq!((skipped(0), skipped(19)), (after(250), after(250)), "before the table's end");
    assert_eq!(skipped(20), CodeAction::GiveUp(CodeGiveUp::SkipLimit));
    let tabled = |attempt| all().end([]).skip([]).build().unwrap().classify(500, attempt);
    assert_eq!((tabled(0), tabled(9)), (after(0), after(34_000)));
    let fixed = |attempt| all().end([]).skip([]).fibonacci([]).build().unwrap().classify(500, attempt);
    assert_eq!((fixed(0), fixed(9)), (after(77), after(77)));
    let exhausted = CodeAction::GiveUp(CodeGiveUp::Exhausted);
    assert_eq!((tabled(10), fixed(10), fixed(u32::MAX)), (exhausted, exhausted, exhausted));
    assert_eq!(CodeRules::default().classify(418, 10), exhausted, "any code");
}

/// R15: the decision; the poller's test shows the time.
#[test]
fn a_code_to_skip_for_ever_has_a_floor_and_a_limit() {
    let mut classifier = Classifier::new(CodeRules::builder().skip([503]).build().unwrap());
    let mut skipped = s(0);
    for _ in 0..10 {
        let CodeAction::Retry { after } = classifier.on_failure(503) else { panic!("gave up early") };
        assert!(after >= ms(250));
        skipped += after;
    }
    assert_eq!(classifier.on_failure(503), CodeAction::GiveUp(CodeGiveUp::SkipLimit));
    assert_eq!(skipped, ms(2500));
    assert!(CodeRules::builder().skip_floor(s(0)).build().is_err(), "no floor, no rules");
    assert!(CodeRules::builder().fixed(500, 0).build().is_err());
}

/// R18.
#[test]
fn a_limit_for_one_code_gives_up_at_that_answer_of_it() {
    let rules = CodeRules::builder().limit(404, 5).build().unwrap();
    let mut classifier = Classifier::new(rules.clone());
    for _ in 0..4 {
        assert_eq!(classifier.on_failure(404), after(2000));
    }
    assert_eq!(classifier.on_failure(404), CodeAction::GiveUp(CodeGiveUp::CodeLimit));

    let mut mixed = Classifier::new(rules);
    for code in [404, 503, 404, 503, 404, 404] {
        assert!(matches!(mixed.on_failure(code), CodeAction::Retry { .. }), "{code}");
    }
    mixed.on_success();
    assert_eq!(mixed.on_failure(404), after(2000), "a success starts the count over");
    assert!(CodeRules::builder().limit(404, 0).build().is_err());
}

#[test]
fn other_codes_do_not_use_up_the_limit_of_one() {
    let mut classifier = Classifier::new(CodeRules::builder().limit(404, 2).build().unwrap());
    for _ in 0..9 {
        assert_eq!(classifier.on_failure(503), after(1000));
    }
    assert_eq!(classifier.on_failure(404), after(2000));
    assert_eq!(classifier.attempt(), 10);
}
