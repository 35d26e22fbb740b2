//! The last searches of each caller, and the bounds on what one caller counts.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gatewright_core::{Audience, Caller};
use gatewright_search::{UsageTerm, UsedDocument};

/// Time in which a call follows a search.
const FOLLOWS: Duration = Duration::from_secs(10 * 60);
/// Searches of a caller that are remembered.
const MOST_SEARCHES: usize = 4;
/// Callers whose searches are remembered, and callers that count on one day.
const MOST_CALLERS: usize = 1_000;
/// Tools that count for one search, and found ones that are remembered.
const MOST_TOOLS: usize = 20;
/// Pairs of a term and a tool that one caller counts on one day, each once.
const MOST_PAIRS: usize = 300;
const DAY: u64 = 24 * 3_600;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Callers {
    /// By session, or by principal where there is none.
    searches: HashMap<Audience, VecDeque<Search>>,
    /// Pairs that count today, by subject.
    today: HashMap<Arc<str>, HashSet<(UsageTerm, UsedDocument)>>,
    day: u64,
}

#[derive(Debug)]
struct Search {
    at: SystemTime,
    terms: Vec<UsageTerm>,
    found: Vec<UsedDocument>,
    /// Tools that were called after it.
    called: Vec<UsedDocument>,
    /// A call followed it.
    is_over: bool,
}

impl Search {
    fn is_recent(&self, now: SystemTime) -> bool {
        now.duration_since(self.at).is_ok_and(|age| age <= FOLLOWS)
    }
}

impl Callers {
    pub(super) fn searched(
        &mut self,
        caller: &Caller,
        terms: Vec<UsageTerm>,
        found: impl Iterator<Item = UsedDocument>,
        now: SystemTime,
    ) {
        let key = Audience::session(caller);
        if self.searches.len() >= MOST_CALLERS && !self.searches.contains_key(&key) {
            self.make_room(now);
        }
        let searches = self.searches.entry(key).or_default();
        if searches.len() == MOST_SEARCHES {
            searches.pop_front();
        }
        let found = found.take(MOST_TOOLS).collect();
        searches.push_back(Search { at: now, terms, found, called: Vec::new(), is_over: false });
    }

    /// Forgets the callers without a recent search, or else the one that searched the longest ago.
    fn make_room(&mut self, now: SystemTime) {
        let last = |searches: &VecDeque<Search>| searches.back().map(|search| search.at);
        self.searches.retain(|_, searches| searches.back().is_some_and(|search| search.is_recent(now)));
        if self.searches.len() >= MOST_CALLERS
            && let Some(oldest) = self.searches.iter().min_by_key(|(_, searches)| last(searches))
        {
            let oldest = oldest.0.clone();
            self.searches.remove(&oldest);
        }
    }

    /// The terms for which a call of `document` counts.
    ///
    /// A call follows the recent searches that found the tool, and those before them that no call followed yet: these asked for the same in
    /// other words. If none found it, it follows those that no call followed yet.
    pub(super) fn called(
        &mut self,
        caller: &Caller,
        document: UsedDocument,
        now: SystemTime,
    ) -> Vec<UsageTerm> {
        let Some(searches) = self.searches.get_mut(&Audience::session(caller)) else { return Vec::new() };
        searches.retain(|search| search.is_recent(now));
        let finds = |search: &Search| search.found.contains(&document);
        let until = searches.iter().rposition(finds).map_or(searches.len(), |at| at + 1);
        let mut terms = Vec::new();
        for search in searches.range_mut(..until) {
            let counts = finds(search) || !search.is_over;
            search.is_over = true;
            if counts && search.called.len() < MOST_TOOLS && !search.called.contains(&document) {
                search.called.push(document);
                terms.extend(&search.terms);
            }
        }
        self.within_bounds(caller, document, terms, now)
    }

    /// Those of `terms` for which `caller` may still count today.
    fn within_bounds(
        &mut self,
        caller: &Caller,
        document: UsedDocument,
        mut terms: Vec<UsageTerm>,
        now: SystemTime,
    ) -> Vec<UsageTerm> {
        let day = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / DAY;
        if day != self.day {
            (self.day, self.today) = (day, HashMap::new());
        }
        let subject = &caller.principal().subject;
        if terms.is_empty() || self.today.len() >= MOST_CALLERS && !self.today.contains_key(subject) {
            return Vec::new();
        }
        let today = self.today.entry(subject.clone()).or_default();
        terms.retain(|term| today.len() < MOST_PAIRS && today.insert((*term, document)));
        terms
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::Principal;
    use gatewright_search::{Document, Index};

    use super::*;

    fn terms(text: &str) -> Vec<UsageTerm> {
        let tool = |name: &str| Document {
            name: name.to_owned(),
            app_id: "app".to_owned(),
            description: String::new(),
            input_schema: Arc::default(),
        };
        Index::build([tool("refunds"), tool("disputes")]).usage_terms(text)
    }

    fn caller(subject: &str) -> Caller {
        Caller::new(Principal { subject: subject.into(), ..Principal::local() })
    }

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(20_000 * DAY + seconds)
    }

    const A: fn() -> UsedDocument = || UsedDocument::of("a");
    const B: fn() -> UsedDocument = || UsedDocument::of("b");

    #[test]
    fn a_call_counts_for_the_search_that_found_the_tool_and_for_those_before_it_in_vain() {
        let mut callers = Callers::default();
        let ada = caller("ada");
        callers.searched(&ada, terms("chargebacks"), [B()].into_iter(), at(0));
        callers.searched(&ada, terms("disputes"), [A()].into_iter(), at(10));
        let both = [terms("chargebacks"), terms("disputes")].concat();
        assert_eq!(callers.called(&ada, A(), at(20)), both);
        assert_eq!(callers.called(&ada, A(), at(30)), [], "each search counts a tool once");
        callers.searched(&ada, terms("refunds"), [B()].into_iter(), at(40));
        let again = [terms("chargebacks"), terms("refunds")].concat();
        assert_eq!(callers.called(&ada, B(), at(50)), again, "each found it; the other one is over");
    }

    #[test]
    fn a_call_that_no_search_found_counts_for_those_in_vain_only() {
        let mut callers = Callers::default();
        let ada = caller("ada");
        callers.searched(&ada, terms("disputes"), [A()].into_iter(), at(0));
        callers.called(&ada, A(), at(1));
        callers.searched(&ada, terms("refunds"), [].into_iter(), at(2));
        assert_eq!(callers.called(&ada, B(), at(3)), terms("refunds"));
    }

    #[test]
    fn old_searches_and_those_of_others_do_not_count() {
        let mut callers = Callers::default();
        callers.searched(&caller("ada"), terms("refunds"), [A()].into_iter(), at(0));
        assert_eq!(callers.called(&caller("bob"), A(), at(1)), []);
        assert_eq!(callers.called(&caller("ada"), A(), at(601)), []);
    }

    #[test]
    fn a_caller_counts_a_pair_once_a_day_and_so_many_pairs_in_all() {
        let mut callers = Callers::default();
        let ada = caller("ada");
        let mut calls = |caller: &Caller, tool: &str, seconds: u64| {
            let tool = UsedDocument::of(tool);
            callers.searched(caller, terms("refunds"), [tool].into_iter(), at(seconds));
            callers.called(caller, tool, at(seconds)).len()
        };
        assert_eq!([calls(&ada, "a", 0), calls(&ada, "a", 3_600), calls(&ada, "a", DAY)], [1, 0, 1]);
        let counted: usize = (0..400).map(|n| calls(&ada, &n.to_string(), DAY + n)).sum();
        assert_eq!(counted, MOST_PAIRS - 1);
        assert_eq!(calls(&caller("bob"), "a", DAY), 1, "others still count");
    }

    #[test]
    fn searches_of_so_many_callers_are_remembered() {
        let mut callers = Callers::default();
        for n in 0..MOST_CALLERS as u64 + 1 {
            callers.searched(&caller(&n.to_string()), terms("refunds"), [A()].into_iter(), at(n / 10));
        }
        assert_eq!(callers.searches.len(), MOST_CALLERS);
        assert_eq!(callers.called(&caller("1000"), A(), at(200)), terms("refunds"));
    }
}
