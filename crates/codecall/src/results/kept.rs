//! Whole results that were too big for a reply, for their caller to read.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gatewright_core::{
    Caller, FreeMemory, Groups, Principal, Scopes,
    rmcp::model::{ReadResourceResult, ResourceContents},
};

/// Time for which a result is kept.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(600);
/// Bytes that are kept for one subject with all its clients, and for all: an eighth of the memory at most. Older results give way.
const MOST_OF_ONE: usize = 16 << 20;
static MOST_OF_ALL: LazyLock<usize> = LazyLock::new(|| FreeMemory::of_system().part(8, 128 << 20));
/// Bytes that a result counts at least, so that there are not too many of them.
const LEAST: usize = 16 << 10;
/// Beginning of the URIs of kept results.
const PREFIX: &str = "gatewright://results/";

/// Kept results of all callers.
#[derive(Debug, Default)]
pub(crate) struct KeptResults(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    results: HashMap<String, Kept>,
    /// Names in the order in which they came. Some are gone already.
    order: VecDeque<String>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    owner: Owner,
    json: Arc<str>,
    until: Instant,
}

impl Kept {
    /// Bytes that it counts.
    fn weight(&self) -> usize {
        self.json.len().max(LEAST)
    }
}

/// Subject, client and endpoint, and the scopes and groups that they had: another client of the same user is another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    subject: Arc<str>,
    client: Option<Arc<str>>,
    endpoint: Option<Arc<str>>,
    scopes: Scopes,
    groups: Groups,
}

impl Owner {
    pub(crate) fn of(caller: &Caller) -> Self {
        let Principal { subject, client_id, scopes, groups, endpoint } = Principal::clone(caller.principal());
        Self { subject, client: client_id, endpoint, scopes, groups }
    }

    /// Returns `true` if results of both count together: a user may register any number of clients.
    fn shares_room_with(&self, other: &Self) -> bool {
        self.subject == other.subject
    }

    /// Returns `true` if `reader` may read what this owner's calls returned: it has every scope and is in every group that they were
    /// made with.
    fn lets_read(&self, reader: &Self) -> bool {
        let has_all = match &self.scopes {
            Scopes::All => reader.scopes == Scopes::All,
            Scopes::Granted(scopes) => scopes.iter().all(|scope| reader.scopes.allows(scope)),
        };
        let named = |one: &Self| (one.subject.clone(), one.client.clone(), one.endpoint.clone());
        named(self) == named(reader) && has_all && reader.groups.contains_all(&self.groups)
    }
}

impl KeptResults {
    /// Keeps `json` for `owner`. Returns its URI; `None` when it is too big to be kept.
    pub(crate) fn keep(&self, owner: &Owner, json: String) -> Option<String> {
        self.keep_at(owner, json, Instant::now())
    }

    fn keep_at(&self, owner: &Owner, json: String, now: Instant) -> Option<String> {
        if json.len() > MOST_OF_ONE {
            return None;
        }
        let kept = Kept { owner: owner.clone(), json: json.into(), until: now + KEPT_FOR };
        let mut table = self.lock();
        table.drop_while(|kept| kept.until <= now);
        let of_owner = |table: &Table| {
            let own = table.results.values().filter(|kept| kept.owner.shares_room_with(owner));
            own.map(Kept::weight).sum::<usize>()
        };
        while of_owner(&table) + kept.weight() > MOST_OF_ONE {
            table.drop_first(|kept| kept.owner.shares_room_with(owner))?;
        }
        while table.bytes + kept.weight() > *MOST_OF_ALL {
            table.drop_first(|_| true)?;
        }
        let name = random_name();
        table.bytes += kept.weight();
        table.order.push_back(name.clone());
        table.results.insert(name.clone(), kept);
        Some(format!("{PREFIX}{name}"))
    }

    /// The result at `uri`, if it is there, belongs to `caller`, and the caller still has the scopes that it had when it was made.
    pub(crate) fn read(&self, uri: &str, caller: &Caller) -> Option<ReadResourceResult> {
        let json = self.find(uri, &Owner::of(caller), Instant::now())?;
        let contents = ResourceContents::text(&*json, uri).with_mime_type("application/json");
        Some(ReadResourceResult::new(vec![contents]))
    }

    fn find(&self, uri: &str, owner: &Owner, now: Instant) -> Option<Arc<str>> {
        let name = uri.strip_prefix(PREFIX)?;
        let table = self.lock();
        let kept = table.results.get(name)?;
        (kept.owner.lets_read(owner) && kept.until > now).then(|| kept.json.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Drops the oldest results as long as `fits` accepts them.
    fn drop_while(&mut self, fits: impl Fn(&Kept) -> bool) {
        while let Some(name) = self.order.front() {
            if self.results.get(name).is_some_and(|kept| !fits(kept)) {
                return;
            }
            if let Some(gone) = self.order.pop_front().and_then(|name| self.results.remove(&name)) {
                self.bytes -= gone.weight();
            }
        }
    }

    /// Drops the oldest result that `fits` accepts; `None` if there is none.
    fn drop_first(&mut self, fits: impl Fn(&Kept) -> bool) -> Option<()> {
        let at = self.order.iter().position(|name| self.results.get(name).is_some_and(&fits))?;
        let gone = self.order.remove(at).and_then(|name| self.results.remove(&name))?;
        self.bytes -= gone.weight();
        Some(())
    }
}

/// 128 random bits, in hexadecimal digits.
///
/// # Panics
/// The system has no random numbers.
pub(crate) fn random_name() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system's random numbers");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(subject: &str, client: Option<&str>) -> Owner {
        Owner {
            subject: subject.into(),
            client: client.map(Into::into),
            endpoint: None,
            scopes: Scopes::All,
            groups: Groups::default(),
        }
    }

    #[test]
    fn a_result_is_not_read_after_a_scope_was_given_up() {
        let (kept, now) = (KeptResults::default(), Instant::now());
        let with = |scopes: &str| Owner { scopes: Scopes::parse(scopes), ..owner("ada", Some("desk")) };
        let uri = kept.keep_at(&with("crm:read crm:write"), "[1]".to_owned(), now).unwrap();
        for (scopes, may) in [
            ("crm:write crm:read", true),
            ("crm:read crm:write billing:read", true),
            ("crm:*", true),
            ("crm:read", false),
            ("", false),
        ] {
            assert_eq!(kept.find(&uri, &with(scopes), now).is_some(), may, "{scopes}");
        }
        let of_all = kept.keep_at(&owner("ada", None), "[1]".to_owned(), now).unwrap();
        assert_eq!(
            kept.find(&of_all, &Owner { scopes: Scopes::parse("crm:read"), ..owner("ada", None) }, now),
            None
        );
    }

    #[test]
    fn only_its_owner_reads_a_result_and_only_for_a_while() {
        let (kept, now) = (KeptResults::default(), Instant::now());
        let ada = owner("ada", Some("desk"));
        let uri = kept.keep_at(&ada, "[1]".to_owned(), now).unwrap();
        assert_eq!(kept.find(&uri, &ada, now).as_deref(), Some("[1]"));
        let elsewhere = Owner { endpoint: Some("support".into()), ..ada.clone() };
        for other in [owner("bob", Some("desk")), owner("ada", None), owner("ada", Some("phone")), elsewhere]
        {
            assert_eq!(kept.find(&uri, &other, now), None);
        }
        assert_eq!(kept.find(&uri, &ada, now + KEPT_FOR), None);
        assert_eq!(kept.find("gatewright://results/", &ada, now), None);
    }

    #[test]
    fn older_results_of_a_subject_give_way_to_newer_ones_and_those_of_others_stay() {
        let (kept, now) = (KeptResults::default(), Instant::now());
        let (ada, bob) = (owner("ada", None), owner("bob", None));
        let of_bob = kept.keep_at(&bob, "{}".to_owned(), now).unwrap();
        let half = || "x".repeat(MOST_OF_ONE / 2);
        let clients = [ada.clone(), owner("ada", Some("phone")), ada.clone()];
        let uris: Vec<_> = clients.iter().map(|ada| kept.keep_at(ada, half(), now).unwrap()).collect();
        let is_there = |uri: &str, owner: &Owner| kept.find(uri, owner, now).is_some();
        assert_eq!([false, true, true], [0, 1, 2].map(|at| is_there(&uris[at], &clients[at])));
        assert!(is_there(&of_bob, &bob));
        assert_eq!(kept.keep_at(&ada, "x".repeat(MOST_OF_ONE + 1), now), None);
        assert!(is_there(&uris[2], &ada), "a result that is too big drops nothing");
    }

    #[test]
    fn all_results_together_stay_within_their_bytes_and_expired_ones_are_dropped() {
        let (kept, now) = (KeptResults::default(), Instant::now());
        for n in 0..12 {
            kept.keep_at(&owner(&n.to_string(), None), "x".repeat(MOST_OF_ONE), now).unwrap();
            assert!(kept.lock().bytes <= *MOST_OF_ALL);
        }
        kept.keep_at(&owner("late", None), "1".to_owned(), now + KEPT_FOR).unwrap();
        let table = kept.lock();
        assert_eq!((table.bytes, table.results.len(), table.order.len()), (LEAST, 1, 1));
    }
}
