//! An ordered queue of the tasks of one class that may start.

use std::collections::{BTreeSet, VecDeque};

use crate::model::id::Id;

/// A task's place in its queue: those past their own deadline first, then first declared, first out, whenever
/// it became able to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    patient: bool,
    number: u64,
    id: Id,
}

impl Ticket {
    pub(crate) fn new(head: bool, number: u64, id: Id) -> Ticket {
        Ticket { patient: !head, number, id }
    }
}

/// The tasks of one queue that may start, in the order of their tickets.
///
/// Nearly all come in that order already, and they stand in a ring: a million of them cost no allocation each.
/// Those that come out of order (a predecessor has just completed, a deadline has passed) stand in a tree.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// Rising numbers; one that has left is `None` until it comes to the front. The first is never `None`.
    in_order: VecDeque<(u64, Option<Id>)>,
    out_of_order: BTreeSet<Ticket>,
    /// How many have left the ring since it was last free of gaps; those at the front are counted too.
    gaps: usize,
    live: usize,
}

impl ReadyQueue {
    pub(crate) fn push(&mut self, ticket: Ticket) {
        let Ticket { patient, number, id } = ticket;
        if patient && self.in_order.back().is_none_or(|(last, _)| *last < number) {
            self.in_order.push_back((number, Some(id)));
            self.live += 1;
        } else if self.out_of_order.insert(ticket) {
            self.live += 1;
        }
    }

    pub(crate) fn first(&self) -> Option<Id> {
        let in_order =
            self.in_order.front().and_then(|(number, id)| Some(Ticket::new(false, *number, (*id)?)));
        let first = match (in_order, self.out_of_order.first()) {
            (Some(a), Some(b)) => a.min(*b),
            (Some(only), None) | (None, Some(&only)) => only,
            (None, None) => return None,
        };
        Some(first.id)
    }

    /// Takes a task out, wherever it stands; false where it does not.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> bool {
        let left = self.leave_ring(ticket) || self.out_of_order.remove(&ticket);
        self.live -= usize::from(left);
        left
    }

    fn leave_ring(&mut self, ticket: Ticket) -> bool {
        let place = match self.in_order.front() {
            Some((number, _)) if *number == ticket.number => 0,
            _ => match self.in_order.binary_search_by_key(&ticket.number, |(number, _)| *number) {
                Ok(place) => place,
                Err(_) => return false,
            },
        };
        let stood = self.in_order[place].1.take_if(|id| *id == ticket.id).is_some();
        while self.in_order.front().is_some_and(|(_, id)| id.is_none()) {
            self.in_order.pop_front();
        }
        self.gaps += usize::from(stood);
        if self.gaps > 32 && 2 * self.gaps > self.in_order.len() {
            // Those that left from the middle must not add up behind one that waits for ever.
            self.in_order.retain(|(_, id)| id.is_some());
            self.gaps = 0;
        }
        stood
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The ring and the tree together are one ordered set.
        #[test]
        fn a_line_is_an_ordered_set_of_tickets(
            steps in proptest::collection::vec((0u8..3, 0u32..40, any::<bool>()), 0..200),
        ) {
            let mut line = ReadyQueue::default();
            let mut model: BTreeSet<Ticket> = BTreeSet::new();
            for (step, number, head) in steps {
                let ticket = Ticket::new(head, u64::from(number), Id::new(number, 0));
                let stands = [true, false].into_iter()
                    .map(|head| Ticket::new(head, u64::from(number), Id::new(number, 0)))
                    .find(|ticket| model.contains(ticket));
                match (step, stands) {
                    (0 | 1, None) => {
                        line.push(ticket);
                        model.insert(ticket);
                    }
                    (2, stands) => {
                        let ticket = stands.unwrap_or(ticket);
                        prop_assert_eq!(line.remove(ticket), model.remove(&ticket));
                    }
                    _ => {}
                }
                prop_assert_eq!(line.first(), model.first().map(|ticket| ticket.id));
                prop_assert_eq!(line.len(), model.len());
                prop_assert_eq!(line.is_empty(), model.is_empty());
            }
        }
    }
}
