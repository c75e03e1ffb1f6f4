//! Against a model that is a list.

use proptest::prelude::*;

use super::*;
use crate::spool::{Evicted, RowId, Totals};

const CAP: u64 = 40_000;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<Shape>),
    Delete(Vec<usize>),
    Replace(usize, Shape),
    Expire(u64),
    List(Option<&'static str>, u64, usize),
    Erase(&'static str),
    Adopt(Vec<Shape>),
    Reopen,
}

#[derive(Clone, Debug)]
struct Shape {
    seq: u64,
    vital: bool,
    user: Option<&'static str>,
    events: u32,
    newest: u64,
    life: u64,
    size: usize,
}

impl Shape {
    fn row(&self) -> NewRow {
        NewRow {
            priority: if self.vital { Priority::Vital } else { Priority::Basic },
            user: self.user.map(str::to_owned),
            events: self.events,
            newest_at: NOW + self.newest,
            expires_at: NOW + self.life,
            body: large(self.size),
            ..row(self.seq)
        }
    }
}

fn user() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))]
}

fn shape() -> impl Strategy<Value = Shape> {
    (0..40_u64, any::<bool>(), user(), 0..100_u32, 0..10_u64, 1..100_u64, 1..9000_usize).prop_map(
        |(seq, vital, user, events, newest, life, size)| Shape {
            seq,
            vital,
            user,
            events,
            newest,
            life,
            size,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let shapes = || prop::collection::vec(shape(), 1..4);
    prop_oneof![
        6 => shapes().prop_map(Step::Put),
        2 => prop::collection::vec(0..12_usize, 0..4).prop_map(Step::Delete),
        2 => (0..12_usize, shape()).prop_map(|(at, shape)| Step::Replace(at, shape)),
        1 => (0..20_u64).prop_map(Step::Expire),
        3 => (user(), 0..20_u64, 0..6_usize).prop_map(|(user, now, limit)| Step::List(user, now, limit)),
        1 => prop_oneof![Just("a"), Just("b")].prop_map(Step::Erase),
        1 => shapes().prop_map(Step::Adopt),
        1 => Just(Step::Reopen),
    ]
}

#[derive(Default)]
struct Model(Vec<(RowId, NewRow)>);

impl Model {
    fn charged(&self) -> u64 {
        self.0.iter().map(|(_, row)| row.body.len() as u64 + 512).sum()
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.0.iter().for_each(|(_, row)| totals.add(row.events, row.body.len()));
        totals
    }

    fn find(&self, row: &NewRow) -> Option<usize> {
        self.0.iter().position(|(_, known)| known.first_seq == row.first_seq)
    }

    fn put(&mut self, rows: &[NewRow], ids: &[RowId]) -> Vec<RowId> {
        for (row, &id) in rows.iter().zip(ids) {
            match self.find(row) {
                Some(at) => assert_eq!(self.0[at].0, id),
                None => self.0.push((id, row.clone())),
            }
        }
        let mut gone = Vec::new();
        if self.charged() > CAP {
            gone = self.remove(|row| row.expires_at <= NOW);
        }
        while self.charged() > CAP {
            let basic_first =
                |(id, row): &&(RowId, NewRow)| (row.priority != Priority::Basic, row.newest_at, *id);
            let victim = self.0.iter().min_by_key(basic_first).map(|(id, _)| *id);
            gone.extend(victim);
            self.0.retain(|(id, _)| Some(*id) != victim);
        }
        gone
    }

    fn remove(&mut self, which: impl Fn(&NewRow) -> bool) -> Vec<RowId> {
        let gone = self.0.iter().filter(|(_, row)| which(row)).map(|(id, _)| *id).collect();
        self.0.retain(|(_, row)| !which(row));
        gone
    }

    fn listed(&self, user: Option<&str>, now: u64, limit: usize) -> Vec<RowId> {
        let mine = |row: &NewRow| row.user.is_none() || row.user.as_deref() == user;
        let mut rows: Vec<_> = self.0.iter().filter(|(_, row)| mine(row) && row.expires_at > now).collect();
        rows.sort_by_key(|(id, row)| (row.priority, row.newest_at, *id));
        rows.iter().take(limit).map(|(id, _)| *id).collect()
    }
}

fn sorted(mut ids: Vec<RowId>) -> Vec<RowId> {
    ids.sort_unstable();
    ids
}

fn ids_of(gone: &[Evicted]) -> Vec<RowId> {
    sorted(gone.iter().map(|gone| gone.id).collect())
}

fn options(place: &Place) -> SpoolOptions {
    SpoolOptions { max_bytes: CAP, ..place.options() }
}

/// One step in both worlds.
fn take(place: &Place, spool: &mut Spool, model: &mut Model, step: Step) {
    match step {
        Step::Put(shapes) => {
            let rows: Vec<_> = shapes.iter().map(Shape::row).collect();
            let done = put(spool, &rows);
            assert_eq!(ids_of(&done.evicted), sorted(model.put(&rows, &done.ids)));
        }
        Step::Delete(places) => {
            let ids: Vec<_> = places.iter().filter_map(|&at| model.0.get(at)).map(|(id, _)| *id).collect();
            spool.delete(&ids).unwrap();
            model.0.retain(|(id, _)| !ids.contains(id));
        }
        Step::Replace(at, shape) => {
            let gone: Vec<_> = model.0.get(at).map(|(id, _)| *id).into_iter().collect();
            let rows = [shape.row()];
            let done = spool.replace(&gone, &rows, Durability::Process, &stamp(NOW)).unwrap();
            model.0.retain(|(id, _)| !gone.contains(id));
            assert_eq!(ids_of(&done.evicted), sorted(model.put(&rows, &done.ids)));
        }
        Step::Expire(after) => {
            let gone = spool.expire(&stamp(NOW + after)).unwrap();
            assert_eq!(ids_of(&gone), sorted(model.remove(|row| row.expires_at <= NOW + after)));
        }
        Step::List(user, after, limit) => {
            let listed = spool.list(user, &stamp(NOW + after), |_| false, limit).unwrap();
            let ids: Vec<_> = listed.iter().map(|row| row.id).collect();
            assert_eq!(ids, model.listed(user, NOW + after, limit));
            for row in listed {
                assert!(model.0.contains(&(row.id, row.batch)));
            }
        }
        Step::Erase(user) => {
            let erased = spool.erase_user(user).unwrap();
            assert_eq!(ids_of(&erased.rows), sorted(model.remove(|row| row.user.as_deref() == Some(user))));
        }
        Step::Adopt(shapes) => {
            let mut unique: Vec<NewRow> = Vec::new();
            for row in shapes.iter().map(Shape::row).map(|row| NewRow { user: None, ..row }) {
                if model.find(&row).is_none() && unique.iter().all(|known| known.first_seq != row.first_seq) {
                    unique.push(row);
                }
            }
            let sum: u64 = unique.iter().map(|row| row.body.len() as u64 + 512).sum();
            if model.charged() + sum > CAP {
                return;
            }
            place.orphan(&unique);
            let adopted = spool.adopt(None, &stamp(NOW), 100);
            assert_eq!(adopted.rows, unique.len() as u64);
            let listed = spool
                .list(None, &stamp(NOW), |id| model.0.iter().any(|(known, _)| *known == id), 100)
                .unwrap();
            assert_eq!(listed.len(), unique.len());
            model.0.extend(listed.into_iter().map(|row| (row.id, row.batch)));
        }
        Step::Reopen => {
            // As if the file had been closed and opened by the same process: the ids stay.
            spool.db = None;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever happens, the totals are what a recount finds and what the model says.
    #[test]
    fn totals_are_a_recount_and_the_model(steps in prop::collection::vec(step(), 1..40)) {
        let place = Place::new();
        let mut spool = Spool::make(&options(&place), "app", 0).unwrap();
        let mut model = Model::default();
        for step in steps {
            take(&place, &mut spool, &mut model, step);
            if spool.db.is_some() {
                assert_eq!(spool.totals(), recount(&spool));
            }
            assert_eq!(spool.totals(), model.totals());
        }
    }
}
