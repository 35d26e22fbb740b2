//! Places among the first hits for the best tool of each part of a request, and of each app that it names.

use crate::{
    Index,
    apps::NamedApp,
    candidates::Candidate,
    features::{Features, Looked},
};

/// Hits among which places are kept.
const AMONG: usize = 5;

impl Index {
    /// Moves the candidates that are to have a place up to the end of the first [`AMONG`] or `top_k`. The others stay in
    /// order.
    pub(crate) fn keep_places(
        &self,
        named: &[NamedApp],
        candidates: &[Candidate],
        looked: &Looked,
        order: &mut Vec<(f32, Candidate)>,
        top_k: usize,
    ) {
        let places = self.places(named, candidates, looked, order);
        let top = top_k.min(AMONG).min(order.len());
        let has_place = |at: &usize| {
            let one = &order[*at].1;
            places.iter().any(|place| (place.part, place.document) == (one.part, one.document))
        };
        let mut low: Vec<usize> = (top..order.len()).filter(has_place).collect();
        let mut give_way: Vec<usize> = (0..top).rev().filter(|at| !has_place(at)).collect();
        low.truncate(give_way.len());
        if low.is_empty() {
            return;
        }
        give_way.truncate(low.len());
        let is_first = |at: usize| if at < top { !give_way.contains(&at) } else { low.contains(&at) };
        let (first, rest): (Vec<_>, Vec<_>) = order.drain(..).enumerate().partition(|(at, _)| is_first(*at));
        order.extend(first.into_iter().chain(rest).map(|(_, one)| one));
    }

    /// The candidates that are to have a place.
    fn places(
        &self,
        named: &[NamedApp],
        candidates: &[Candidate],
        looked: &Looked,
        order: &[(f32, Candidate)],
    ) -> Vec<Candidate> {
        let weights = &self.inner.weights;
        let parts = looked.parts;
        let best = |part: usize, among: &dyn Fn(&Candidate) -> bool| -> Option<(Candidate, &Features)> {
            let names_it = |app: &NamedApp| (app.clauses >> part & 1) as f32;
            let seen = candidates.iter().zip(looked.each_part.chunks(parts));
            let keys = seen.filter(|(one, _)| among(one)).map(|(one, seen)| {
                let key = seen[part].rank(&weights.rank) + self.bonus(named, one, names_it);
                (key, one, &seen[part])
            });
            let first =
                keys.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| self.tie(b.1).cmp(&self.tie(a.1))));
            first.map(|(_, one, seen)| (*one, seen))
        };
        let of_parts = (0..parts).filter_map(|part| best(part, &|_| true));
        let of_parts = of_parts.filter(|(_, seen)| seen.share >= weights.place_from).map(|(one, _)| one);
        let of_apps = named.iter().filter_map(|app| {
            let is_its = |one: &Candidate| *self.tie(one).0 == *app.id;
            match parts {
                0 => order.iter().map(|(_, one)| *one).find(is_its),
                _ => best(app.clauses.trailing_zeros() as usize, &is_its).map(|(one, _)| one),
            }
        });
        of_parts.chain(of_apps).collect()
    }
}
