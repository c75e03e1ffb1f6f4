//! Whose turn it is: the laws, and a plain account of who waited and of what everybody got.

use std::time::Duration;

use super::World;
use crate::core::Class;
use crate::model::queue::Queue;

const CLASSES: [Class; 3] = [Class::Demanded, Class::Normal, Class::Idle];

/// Who waits for a poll, and what was spent.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// In the order of their wakes, each with how many came before.
    woken: Vec<(usize, u64)>,
    wakes: u64,
    /// Whether the last turn of each class was a start.
    started: [bool; 3],
    /// A lent slot waits for those who were woken before this one.
    held_back: Option<u64>,
    /// The class of the poll in progress, and at which borders both sides wanted the lane.
    turn: Option<(usize, Vec<usize>)>,
    /// What a poll of those behind each border may take, by the last ones.
    next: [Option<Duration>; 2],
    /// What was spent while both sides of a border wanted the lane: in all, and on those behind.
    spent: [(Duration, Duration); 2],
    /// What of that does not give those behind anything: it was spent before the two sides last came together.
    lapsed: [Duration; 2],
    longest_behind: [Duration; 2],
}

impl Turns {
    pub(super) fn anyone_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    pub(super) fn is_woken(&self, i: usize) -> bool {
        self.woken.iter().any(|(woken, _)| *woken == i)
    }

    pub(super) fn leaves(&mut self, i: usize) {
        self.woken.retain(|(woken, _)| *woken != i);
    }

    /// The poll in progress is over, or keeps nobody from the lane any more.
    pub(super) fn charge(&mut self, took: Duration) {
        let took = took.max(Duration::from_micros(1));
        let Some((place, contested)) = self.turn.take() else { return };
        for border in 0..2 {
            let behind = place > border;
            if behind {
                self.next[border] = Some(took.max(self.next(border) / 2));
            }
            if !contested.contains(&border) {
                continue;
            }
            let (all, theirs) = &mut self.spent[border];
            *all += took;
            if behind {
                *theirs += took;
                self.longest_behind[border] = self.longest_behind[border].max(took);
            }
            assert!(
                *theirs <= *all / 16 + self.longest_behind[border],
                "those behind had {theirs:?} of {all:?}: more than a sixteenth and one poll"
            );
        }
    }

    /// Only one side of the border wants the lane: what those behind have not had by now has lapsed.
    fn come_together_anew(&mut self, border: usize) {
        let (all, theirs) = self.spent[border];
        self.lapsed[border] = self.lapsed[border].max(all.saturating_sub(theirs * 16));
    }

    /// Whether those behind this border will have had no more than their part when their next poll is over.
    fn is_short(&self, border: usize) -> bool {
        let (all, theirs) = self.spent[border];
        theirs * 16 + self.lapsed[border] + self.next(border) * 15 < all
    }

    fn next(&self, border: usize) -> Duration {
        self.next[border].unwrap_or(Duration::from_millis(1))
    }
}

/// What could be polled of a class: the start, and who was woken first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Could {
    start: bool,
    woken: Option<usize>,
}

impl Could {
    fn any(self) -> bool {
        self.start || self.woken.is_some()
    }
}

impl World {
    pub(super) fn wake(&mut self, i: usize) {
        let task = &self.tasks[i];
        // Who is stuck is not polled twice at once.
        let news = task.live && !task.stuck && !self.turns.is_woken(i);
        assert_eq!(self.core.woken(task.id, None), news, "whether task {i} was woken");
        if news {
            self.turns.woken.push((i, self.turns.wakes));
            self.turns.wakes += 1;
            self.awake = true;
        }
    }

    /// The class that its turn is of: an idle one stands in for a normal one that waits for a slot.
    fn class_of_turn(&self, i: usize) -> Class {
        let needed = self.closed.is_none() && self.line(Queue::Normal).next().is_some() && !self.has_a_slot();
        match self.tasks[i].class {
            Class::Idle if needed => Class::Normal,
            class => class,
        }
    }

    /// By class, the most urgent first.
    pub(super) fn could_be_polled(&mut self) -> [Could; 3] {
        let ordinary = self.ordinary_start();
        CLASSES.map(|class| {
            let start = match class {
                Class::Demanded => {
                    self.closed.is_none() && (0..self.tasks.len()).any(|i| self.stands_demanded(i))
                }
                class => ordinary == Some(class),
            };
            let mut woken = self.turns.woken.iter().map(|(i, _)| *i);
            Could { start, woken: woken.find(|i| self.class_of_turn(*i) == class) }
        })
    }

    fn ordinary_start(&mut self) -> Option<Class> {
        let rested = self.rested().is_some_and(|at| at <= self.now);
        if self.closed.is_some() || !rested || !self.candidate() {
            return None;
        }
        let first = self.first(Queue::Normal).or_else(|| self.first(Queue::Idle))?;
        let class = self.tasks[first].class.min(Class::Normal);
        if self.running() >= self.concurrency() && self.turns.anyone_woken() {
            // A lent slot: its owner may be among those who were woken.
            let before = *self.turns.held_back.get_or_insert(self.turns.wakes);
            let mut woken = self.turns.woken.iter();
            if woken.any(|(i, rank)| *rank < before && self.tasks[*i].class >= class) {
                return None;
            }
        }
        Some(class)
    }

    /// What every pick must hold.
    pub(super) fn check_turn(&mut self, could: &[Could; 3], picked: Option<(usize, bool)>) {
        let Some((i, starts)) = picked else {
            assert!(could.iter().all(|could| !could.any()), "nobody is polled, though {could:?}");
            return;
        };
        let of = |could: &Could| if starts { could.start } else { could.woken == Some(i) };
        let place = if starts {
            let class =
                if self.is_demanded(i) { Class::Demanded } else { self.tasks[i].class.min(Class::Normal) };
            CLASSES.iter().position(|known| *known == class).unwrap()
        } else {
            let place = could.iter().position(of);
            place.unwrap_or_else(|| panic!("task {i} was not woken first: {could:?}"))
        };
        assert!(of(&could[place]), "task {i} could not start: {could:?}");
        let mut contested_at = Vec::new();
        for border in 0..=place.min(1) {
            let contested = could[border].any() && could[border + 1..].iter().any(|could| could.any());
            if contested {
                let behind = place > border;
                assert_eq!(self.turns.is_short(border), behind, "the turn is not task {i}'s: {could:?}");
                contested_at.push(border);
            } else {
                self.turns.come_together_anew(border);
            }
        }
        self.turns.turn = Some((place, contested_at));
        let Could { start, woken } = could[place];
        if start && woken.is_some() {
            assert_ne!(self.turns.started[place], starts, "starts and woken tasks alternate");
        }
        self.turns.started[place] = starts;
        if starts {
            self.turns.held_back = None;
        } else {
            self.turns.leaves(i);
        }
    }

    /// A task and all that it needs become this urgent; `ended` have just ended.
    pub(super) fn raise(&mut self, i: usize, class: Class, ended: &[bool]) {
        let task = &mut self.tasks[i];
        if task.class >= class || task.outcome.is_some() || ended.get(i) == Some(&true) {
            return;
        }
        task.class = class;
        task.demanded |= class == Class::Demanded && task.waits();
        self.raise_needs(i, class, ended);
    }

    pub(super) fn raise_needs(&mut self, i: usize, class: Class, ended: &[bool]) {
        for j in self.needs(i).collect::<Vec<_>>() {
            self.raise(j, class, ended);
        }
    }

    /// Who waits makes what it waits for as urgent as it is itself.
    pub(super) fn hand_on(&mut self, waiter: usize, target: usize) {
        self.raise(target, self.tasks[waiter].class, &[]);
    }
}
