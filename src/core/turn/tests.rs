use super::*;
use crate::base::in_time::in_time;
use proptest::prelude::*;

const ALL: [bool; 3] = [true; 3];

fn wanted(by: [bool; 3]) -> [Could; 3] {
    by.map(|woken| Could { start: false, woken })
}

/// The class whose turn it is when these want the lane, the most urgent first; its poll takes so long.
fn turn(turns: &mut Turns, by: [bool; 3], took: Duration) -> Option<Class> {
    let [demanded, normal, idle] = by;
    let (class, charge) = turns.choose(wanted([idle, normal, demanded]))?;
    turns.charge(charge, took);
    Some(class)
}

/// I35: a sixteenth, and a sixteenth of that sixteenth.
#[test]
fn those_behind_get_a_sixteenth_of_the_time_class_by_class() {
    let mut turns = Turns::default();
    let mut had = [0_u32; 3];
    for _ in 0..100_000 {
        had[turn(&mut turns, ALL, Duration::from_millis(5)).unwrap() as usize] += 1;
    }
    let [idle, normal, demanded] = had.map(f64::from);
    assert!(((normal + idle) / (demanded + normal + idle) - 1.0 / 16.0).abs() < 0.001, "{had:?}");
    assert!((idle / (normal + idle) - 1.0 / 16.0).abs() < 0.005, "{had:?}");
}

/// I35: it is time that is shared and not polls; and a poll is given when it is paid for, by what the last one took.
#[test]
fn those_behind_wait_until_a_poll_of_theirs_is_within_their_part() {
    let mut turns = Turns::default();
    let wants = [true, true, false];
    // 50 ms each, while nobody demanded anything.
    turn(&mut turns, [false, true, false], Duration::from_millis(50));
    let mut next = |took| turn(&mut turns, wants, Duration::from_millis(took)).unwrap();
    let urgent = (0..).take_while(|_| next(10) == Class::Demanded).count();
    assert_eq!(urgent, 76, "15 times 50 ms, and a poll in which it passes that");
    assert_eq!(next(10), Class::Normal, "it took 10 ms only: the rest of the 50 is still theirs");
}

/// I35: a demanded task that comes after hours is not made to wait for what others have saved up, nor they for it.
#[test]
fn what_is_not_contested_counts_for_nobody() {
    for alone in [[true, false, false], [false, false, true]] {
        let mut turns = Turns::default();
        for _ in 0..1_000 {
            turn(&mut turns, alone, Duration::from_secs(10));
        }
        turn(&mut turns, [false, false, true], Duration::ZERO);
        for _ in 0..64 {
            turn(&mut turns, [false, false, true], Duration::from_millis(1));
        }
        let polls = (0..20).map(|_| turn(&mut turns, [true, false, true], Duration::from_millis(1)).unwrap());
        let polls: Vec<Class> = polls.collect();
        assert_eq!(polls.iter().position(|class| *class == Class::Idle), Some(16), "{polls:?}");
    }
}

/// I35, I17: a clock that stands still does not make those behind wait for ever.
#[test]
fn polls_of_no_length_are_shared_too() {
    let mut turns = Turns::default();
    assert!((0..20_000).any(|_| turn(&mut turns, ALL, Duration::ZERO) == Some(Class::Normal)));
}

/// I35: a place among those who are woken is found, not searched for.
#[test]
fn four_hundred_thousand_who_are_woken_may_leave_and_become_more_urgent_in_any_order() {
    in_time(|| {
        let ids: Vec<Id> = (0..400_000).map(|index| Id::new(index, 0)).collect();
        let mut turns = Turns::default();
        ids.iter().for_each(|id| turns.enter(Class::Idle, Woken { id: *id, at: None }));
        for id in ids.iter().rev().skip(1).step_by(2) {
            turns.change(*id, Class::Idle, Class::Normal);
        }
        for id in ids.iter().rev().step_by(2) {
            turns.leave(Class::Idle, *id);
        }
        let left: Vec<Id> =
            std::iter::from_fn(|| turns.pop(Class::Normal, true)).map(|woken| woken.id).collect();
        assert!(left.iter().eq(ids.iter().step_by(2)), "in the order of their wakes");
        assert!(!turns.anyone_woken() && turns.ranks.is_empty());
    });
}

proptest! {
    /// I35: whoever wants the lane when, those behind have at each moment had no more than a sixteenth of the contested
    /// time and one poll; nobody is passed over but for them; and they get what they may have.
    #[test]
    fn nobody_is_slowed_by_more_than_a_sixteenth_and_one_poll_and_nobody_starves(
        steps in prop::collection::vec((any::<[bool; 3]>(), 0..100_000_u64), 0..400),
    ) {
        let mut turns = Turns::default();
        let (mut all, mut theirs, mut longest) = ([0_u64; 2], [0_u64; 2], [0_u64; 2]);
        for (by, micros) in steps {
            let picked = turn(&mut turns, by, Duration::from_micros(micros));
            prop_assert_eq!(picked.is_some(), by.contains(&true));
            let Some(class) = picked else { continue };
            let place = 2 - class as usize;
            prop_assert!(by[place], "{class:?} does not want the lane");
            let micros = micros.max(1);
            for border in 0..=place.min(1) {
                if !(by[border] && by[border + 1..].contains(&true)) {
                    continue;
                }
                all[border] += micros;
                if place > border {
                    prop_assert!(theirs[border] * 16 < all[border], "passed over for more than a sixteenth");
                    theirs[border] += micros;
                    longest[border] = longest[border].max(micros);
                }
                prop_assert!(theirs[border] <= all[border] / 16 + longest[border]);
            }
        }
        // From now on all want it, for polls of a millisecond.
        let owed = 2 * 16 * 100 * 2 + 17;
        for class in [Class::Demanded, Class::Normal] {
            let polls = (0..owed).find(|_| turn(&mut turns, ALL, Duration::from_millis(1)) == Some(class));
            prop_assert!(polls.is_some(), "{class:?} starves");
        }
    }
}
