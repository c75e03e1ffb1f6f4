//! The budget that retries share.

use std::time::Duration;

use afterboot_retry::{BudgetPolicy, Failure, GiveUpReason, RetryBudget, RetryPolicy};

use crate::common::{Hand, gives_up, ms, s, start, waits};

fn small(hand: &Hand) -> RetryBudget {
    let policy = BudgetPolicy::default().capacity(2.0).per_second(0.5).per_success(0.25);
    RetryBudget::new(policy, hand.clock()).unwrap()
}

#[test]
fn an_empty_budget_stops_all_that_share_it_and_says_until_when() {
    let hand = Hand::default();
    let budget = small(&hand);
    let [mut one, mut other] =
        [(); 2].map(|()| start(&RetryPolicy::default(), &hand, 1.0).budget(budget.clone()));
    let _ = (waits(&mut one, Failure::transient()), waits(&mut other, Failure::transient()));
    let given_up = gives_up(&mut one, Failure::transient());
    assert_eq!(given_up.reason, GiveUpReason::Budget { refilled_in: s(2) });
    assert_eq!(given_up.retries, 1);
    hand.advance(ms(1500));
    let reason = gives_up(&mut other, Failure::transient()).reason;
    assert_eq!(reason, GiveUpReason::Budget { refilled_in: ms(500) });
    hand.advance(ms(500));
    let _ = waits(&mut other, Failure::transient());
}

#[test]
fn a_budget_refills_with_time_and_success_up_to_its_capacity() {
    let hand = Hand::default();
    let budget = small(&hand);
    assert_eq!((budget.withdraw(), budget.withdraw(), budget.available()), (Ok(()), Ok(()), 0));
    let mut successful = start(&RetryPolicy::default(), &hand, 1.0).budget(budget.clone());
    for _ in 0..4 {
        successful.on_success();
    }
    assert_eq!(budget.available(), 1);
    hand.advance(s(3600));
    assert_eq!(budget.available(), 2);
    for _ in 0..100 {
        budget.deposit();
    }
    assert_eq!((budget.withdraw(), budget.withdraw()), (Ok(()), Ok(())));
    assert_eq!(budget.withdraw(), Err(s(2)));
}

#[test]
fn a_retry_that_is_not_made_takes_nothing_from_the_others() {
    let hand = Hand::default();
    let budget = small(&hand);
    let mut retry = start(&RetryPolicy::default(), &hand, 1.0).budget(budget.clone());
    for failure in [Failure::permanent(), Failure::transient().retry_after(Duration::MAX)] {
        let _ = gives_up(&mut retry, failure);
    }
    assert_eq!(budget.available(), 2);
}

#[test]
fn a_budget_without_refill_never_promises_one_and_bad_numbers_are_refused() {
    let never = BudgetPolicy::default().capacity(1.0).per_second(0.0).per_success(0.0);
    let budget = RetryBudget::new(never, Hand::default().clock()).unwrap();
    assert_eq!((budget.withdraw(), budget.withdraw()), (Ok(()), Err(Duration::MAX)));
    let bad = BudgetPolicy::default().capacity(0.5).per_second(f64::NAN).per_success(-1.0);
    let error = RetryBudget::new(bad, Hand::default().clock()).unwrap_err();
    assert_eq!(error.problems().len(), 3, "{error}");
}

#[test]
fn the_default_holds_a_hundred_and_refills_ten_a_second() {
    let hand = Hand::default();
    let budget = RetryBudget::new(BudgetPolicy::default(), hand.clock()).unwrap();
    let made = (0..1000).filter(|_| budget.withdraw().is_ok()).count();
    hand.advance(s(1));
    let after_a_second = (0..1000).filter(|_| budget.withdraw().is_ok()).count();
    assert_eq!((made, after_a_second), (100, 10));
}
