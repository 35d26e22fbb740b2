//! A bounded amount of something, shared among callers so that none of them can take all of it.
//!
//! Dynamic thresholds (Choudhury and Hahne, 1998): what a caller may hold depends on what is free. The more is taken, the less anybody
//! gets. A caller is a subject and a network; of an IPv6 address, the networks around it have shares of their own.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    FreeMemory, Principal,
    free_memory::RecentMemory,
    network::{CountedNetwork, Network, counted_networks},
};

/// Whoever takes part of a bounded amount. One without subject and network stands for many: only the whole is bounded for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Claimant(Vec<(Party, usize)>);

/// A party that has a share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Party {
    Subject(Arc<str>),
    Network(CountedNetwork),
}

impl Claimant {
    /// A caller of `subject`, if that is known, at `address`. Addresses of loopback and of `proxies` stand for many callers.
    pub fn new(subject: Option<Arc<str>>, address: Option<IpAddr>, proxies: &[Network]) -> Self {
        let is_shared = |ip: IpAddr| ip.is_loopback() || proxies.iter().any(|network| network.contains(ip));
        let address = address.map(|address| address.to_canonical()).filter(|ip| !is_shared(*ip));
        let subject = subject.map(|subject| (Party::Subject(subject), 1));
        Self(subject.into_iter().chain(address.into_iter().flat_map(parties)).collect())
    }

    /// A caller that is known by its address alone. Loopback counts as one caller.
    pub fn at(address: IpAddr) -> Self {
        Self(parties(address).collect())
    }

    /// The caller `principal` at `address`: its subject, or its network where callers are anonymous. Loopback stands for many.
    pub fn of(principal: &Principal, address: Option<IpAddr>) -> Self {
        let is_anonymous = principal.subject == Principal::local().subject;
        let subject = (!is_anonymous).then(|| principal.subject.clone());
        Self::new(subject, address.filter(|_| is_anonymous), &[])
    }

    /// A name of each party that has a share, the narrowest network first, and the number of callers that it counts for.
    pub fn parties(&self) -> impl Iterator<Item = (String, usize)> + '_ {
        self.0.iter().map(|(party, times)| match party {
            Party::Subject(subject) => (format!("subject {subject}"), *times),
            Party::Network(network) => (format!("network {network}"), *times),
        })
    }

    /// Returns `true` if a subject or network of `other` is also one of this.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().any(|(party, _)| other.0.iter().any(|(theirs, _)| theirs == party))
    }

    /// The parties that wait in lines of their own: the subject alone if there is one, else the networks, the narrowest first.
    pub fn lines(&self) -> impl Iterator<Item = Self> {
        let is_named = self.is_named();
        let of_line = move |party: &Party| matches!(party, Party::Subject(_)) == is_named;
        self.0.iter().filter(move |(party, _)| of_line(party)).map(|party| Self(vec![party.clone()]))
    }

    /// A name of each party that waits in a line of its own ([`Claimant::lines`]), and the number of callers that it counts for.
    pub fn line_parties(&self) -> impl Iterator<Item = (String, usize)> {
        self.lines().flat_map(|line| line.parties().collect::<Vec<_>>())
    }

    /// Returns `true` for a caller with a name of its own.
    pub fn is_named(&self) -> bool {
        self.0.iter().any(|(party, _)| matches!(party, Party::Subject(_)))
    }
}

fn parties(address: IpAddr) -> impl Iterator<Item = (Party, usize)> {
    counted_networks(address).map(|(network, times)| (Party::Network(network), times))
}

/// The share of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portion {
    /// A quarter of what is free: one alone gets a fifth of the whole.
    QuarterOfFree,
    /// As much as is free: one alone gets half of the whole.
    AsMuchAsFree,
    /// This amount.
    Fixed(usize),
    /// A quarter of what is free, and this amount at most.
    UpTo(usize),
}

impl Portion {
    /// The amount that a party may hold that counts for `times` callers, where `free` is left.
    fn of(self, times: usize, free: usize) -> usize {
        match self {
            Self::QuarterOfFree => free.saturating_mul(times) / 4,
            Self::AsMuchAsFree => free.saturating_mul(times),
            // Of a whole /48, no more than what is free; but at least what one caller may have.
            Self::Fixed(amount) => {
                amount.max(amount.saturating_mul(times).min(free.saturating_mul(times) / 4))
            }
            Self::UpTo(amount) => amount.saturating_mul(times).min(free.saturating_mul(times) / 4),
        }
    }

    /// Returns `true` if a party that counts for `times` callers and holds `own` may take `amount`, after which `free` is left. Whoever
    /// holds nothing needs room only.
    pub fn allows(self, own: usize, times: usize, amount: usize, free: usize) -> bool {
        own == 0 || own.saturating_add(amount) <= self.of(times, free)
    }
}

/// Items of different claimants, one of each in turn. Those of one stay in their order. Claimants without parties are one.
pub fn in_turns<'c, T>(items: impl IntoIterator<Item = (&'c Claimant, T)>) -> Vec<T> {
    let mut lines: BTreeMap<String, VecDeque<T>> = BTreeMap::new();
    for (claimant, item) in items {
        let name = claimant.parties().next().map(|(name, _)| name).unwrap_or_default();
        lines.entry(name).or_default().push_back(item);
    }
    let mut turns = Vec::new();
    while !lines.is_empty() {
        lines.retain(|_, line| {
            turns.extend(line.pop_front());
            !line.is_empty()
        });
    }
    turns
}

/// Why something was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoShare {
    /// There is no room for anybody.
    Room,
    /// The caller, or a network around it, has its share.
    Share,
}

/// A bounded amount, and what each caller holds of it.
#[derive(Debug)]
pub struct Shares {
    most: usize,
    portion: Portion,
    /// The memory that each unit takes, which the system has to have left.
    memory: Option<Memory>,
    taken: Mutex<Taken>,
}

/// Memory of the system, and the bytes of it that each unit of the amount takes.
#[derive(Debug, Clone, Copy)]
struct Memory {
    of: &'static FreeMemory,
    unit: u64,
}

impl Memory {
    fn bytes(self, amount: usize) -> u64 {
        self.unit.saturating_mul(amount as u64)
    }

    /// Units that are left.
    fn left(self) -> usize {
        usize::try_from(self.of.left_for_data() / self.unit).unwrap_or(usize::MAX)
    }
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by: HashMap<Party, usize>,
}

/// An amount that is held until this is dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<Shares>,
    claimant: Claimant,
    amount: usize,
    /// Memory of it that was taken last.
    recent: RecentMemory,
}

impl Shares {
    /// Room for `most` in all, and for `portion` of each caller.
    pub fn new(most: usize, portion: Portion) -> Arc<Self> {
        Arc::new(Self { most, portion, memory: None, taken: Mutex::default() })
    }

    /// Room for `most` of what takes `bytes` of memory each, and for `portion` of each caller. Where the machine or the container has less
    /// memory left, that is what is free.
    pub fn of_places(most: usize, bytes: u64, portion: Portion) -> Arc<Self> {
        let memory = Some(Memory { of: FreeMemory::of_system(), unit: bytes });
        Arc::new(Self { most, portion, memory, taken: Mutex::default() })
    }

    /// Room for `most` bytes of memory in all, but not more than a quarter of what the machine or the container has, and for `portion` of each
    /// caller. Where less is left, that is what is free.
    pub fn of_memory(most: usize, portion: Portion) -> Arc<Self> {
        Self::of_places(FreeMemory::of_system().part(4, most), 1, portion)
    }

    /// The amount that there is room for in all; bytes, of [`Shares::of_memory`].
    pub fn most(&self) -> usize {
        self.most
    }

    /// Takes `amount` for `claimant`. Whoever holds nothing needs room only.
    ///
    /// # Errors
    /// There is no room, or the claimant would hold more than its share of what stays free.
    pub fn take(self: &Arc<Self>, claimant: Claimant, amount: usize) -> Result<Share, NoShare> {
        let recent = self.add(&claimant, amount, 0)?;
        Ok(Share { of: self.clone(), claimant, amount, recent })
    }

    /// The amount that is held in all.
    pub fn taken(&self) -> usize {
        self.lock().all
    }

    /// The subject of `claimant`, or else the first of its networks, that has to give something back before it may take `amount`. Where
    /// there is no room, that is whoever holds anything.
    pub fn over(&self, claimant: &Claimant, amount: usize) -> Option<Claimant> {
        let taken = self.lock();
        let free = self.most.saturating_sub(taken.all).saturating_sub(amount);
        let over = claimant.0.iter().find(|party| self.is_over(&taken, party, (amount, 0), free))?;
        Some(Claimant(vec![over.clone()]))
    }

    /// With `held` of what the party holds already, which `amount` is added to.
    fn is_over(
        &self,
        taken: &Taken,
        (party, times): &(Party, usize),
        (amount, held): (usize, usize),
        free: usize,
    ) -> bool {
        let own = taken.by.get(party).copied().unwrap_or_default();
        !self.portion.allows(own.saturating_sub(held), *times, held + amount, free)
    }

    fn add(&self, claimant: &Claimant, amount: usize, held: usize) -> Result<RecentMemory, NoShare> {
        let mut taken = self.lock();
        let left = self.memory.map_or(usize::MAX, Memory::left);
        let free = self.most.saturating_sub(taken.all).min(left).checked_sub(amount).ok_or(NoShare::Room)?;
        if claimant.0.iter().any(|party| self.is_over(&taken, party, (amount, held), free)) {
            return Err(NoShare::Share);
        }
        // Last: whoever has its share takes no memory from others, who may have taken it meanwhile.
        let recent = self.memory.map(|memory| memory.of.try_take(memory.bytes(amount)).ok_or(NoShare::Room));
        let recent = recent.transpose()?.unwrap_or_default();
        for (party, _) in &claimant.0 {
            *taken.by.entry(party.clone()).or_default() += amount;
        }
        taken.all += amount;
        Ok(recent)
    }

    fn give_back(&self, claimant: &Claimant, amount: usize) {
        let mut taken = self.lock();
        taken.all -= amount;
        for (party, _) in &claimant.0 {
            if let Some(own) = taken.by.get_mut(party) {
                *own -= amount;
                if *own == 0 {
                    taken.by.remove(party);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        // Nothing panics while it holds the lock.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// The amount that is held.
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Whoever holds it.
    pub fn claimant(&self) -> &Claimant {
        &self.claimant
    }

    /// Takes `more` for the same claimant.
    ///
    /// # Errors
    /// As those of [`Shares::take`]; what was held before stays.
    pub fn grow(&mut self, more: usize) -> Result<(), NoShare> {
        self.add(more, 0)
    }

    fn add(&mut self, more: usize, held: usize) -> Result<(), NoShare> {
        let recent = self.of.add(&self.claimant, more, held)?;
        self.recent.add(recent);
        self.amount += more;
        Ok(())
    }

    /// Gives back all but `amount`. A share that is smaller stays as it is.
    pub fn shrink_to(&mut self, amount: usize) {
        self.give_back(self.amount.saturating_sub(amount));
    }

    fn give_back(&mut self, less: usize) {
        if let Some(memory) = self.of.memory {
            memory.of.give_back(&mut self.recent, memory.bytes(less));
        }
        self.of.give_back(&self.claimant, less);
        self.amount -= less;
    }

    /// Takes `more`, as if all of it was taken now: if the claimant holds nothing else, it needs room only.
    ///
    /// # Errors
    /// As those of [`Shares::take`]; what was held before stays.
    pub fn grow_whole(&mut self, more: usize) -> Result<(), NoShare> {
        self.add(more, self.amount)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: impl ToString) -> Claimant {
        Claimant::new(Some(name.to_string().into()), None, &[])
    }

    fn at(address: &str) -> Claimant {
        Claimant::at(address.parse().unwrap())
    }

    fn fill(shares: &Arc<Shares>, claimant: &Claimant) -> Vec<Share> {
        std::iter::from_fn(|| shares.take(claimant.clone(), 1).ok()).collect()
    }

    #[test]
    fn one_caller_takes_no_more_than_a_fifth_and_twenty_leave_room_for_a_newcomer() {
        let shares = Shares::new(1_000, Portion::QuarterOfFree);
        let mut all = Vec::new();
        for name in 0..20 {
            let got = fill(&shares, &subject(name));
            assert!((1..=200).contains(&got.len()), "caller {name} got {}", got.len());
            all.push(got);
        }
        assert!(shares.take(subject("new"), 1).is_ok());
    }

    #[test]
    fn a_caller_of_many_ipv6_networks_takes_a_part_of_the_whole_and_others_find_room() {
        for (portion, of_56, of_48) in [
            (Portion::QuarterOfFree, 340, 510),
            (Portion::AsMuchAsFree, 670, 810),
            (Portion::Fixed(10), 20, 40),
            (Portion::Fixed(300), 340, 510),
        ] {
            for (networks, most) in [(0x0100..0x0200, of_56), (0..0x4000, of_48)] {
                let shares = Shares::new(1_000, portion);
                let held: Vec<Share> = networks
                    .flat_map(|n| (0..3).map(move |host| at(&format!("2001:db8:1:{n:x}::{host}"))))
                    .filter_map(|claimant| shares.take(claimant, 1).ok())
                    .collect();
                assert!((most * 9 / 10..=most).contains(&held.len()), "{portion:?}: {}", held.len());
                assert!(shares.take(at("2001:db8:2::1"), 1).is_ok(), "{portion:?}");
                drop(held);
                assert!(shares.lock().by.is_empty() && shares.taken() == 0, "{portion:?}");
            }
        }
    }

    #[test]
    fn items_of_each_claimant_come_in_turn() {
        let all = [subject(1), subject(1), at("192.0.2.1"), subject(1), subject(2), Claimant::default()];
        let turns = in_turns(all.iter().zip(0..));
        assert_eq!(turns, [5, 2, 0, 4, 1, 3]);
    }

    #[test]
    fn what_is_given_back_is_free_again() {
        let shares = Shares::new(10, Portion::QuarterOfFree);
        let got = fill(&shares, &subject(1));
        assert_eq!((shares.taken(), got.len()), (2, 2));
        drop(got);
        assert_eq!(shares.taken(), 0);
        assert!(shares.lock().by.is_empty(), "callers who hold nothing are forgotten");
        assert_eq!(fill(&shares, &subject(1)).len(), 2);
    }

    #[test]
    fn loopback_and_proxies_stand_for_many_and_are_bounded_by_the_whole_alone() {
        let shares = Shares::new(10, Portion::QuarterOfFree);
        let proxies = [Network::parse("10.0.0.0/8").unwrap()];
        let claimant = |address: &str| Claimant::new(None, Some(address.parse().unwrap()), &proxies);
        let proxied = fill(&shares, &claimant("10.0.0.1"));
        assert_eq!(proxied.len(), 10);
        assert_eq!(shares.take(subject(1), 1).unwrap_err(), NoShare::Room);
        drop(proxied);
        assert_eq!(fill(&shares, &claimant("::ffff:127.0.0.1")).len(), 10);
        assert_eq!(fill(&shares, &claimant("192.0.2.1")).len(), 2);
        assert_eq!(fill(&shares, &at("127.0.0.1")).len(), 2);
    }

    #[test]
    fn the_party_that_holds_its_share_is_the_one_to_give_something_back() {
        let shares = Shares::new(4, Portion::AsMuchAsFree);
        let who =
            |name: &str, address: &str| Claimant::new(Some(name.into()), Some(address.parse().unwrap()), &[]);
        let (ada, bob) = (who("ada", "192.0.2.1"), who("bob", "192.0.2.1"));
        let _held = fill(&shares, &ada);
        assert_eq!(shares.taken(), 2);
        assert!(shares.over(&ada, 1).unwrap().meets(&who("ada", "192.0.2.9")), "the subject comes first");
        let network = shares.over(&bob, 1).unwrap();
        assert!(network.meets(&who("cat", "192.0.2.1")) && !network.meets(&who("bob", "192.0.2.9")));
        assert!(shares.over(&who("bob", "192.0.2.9"), 1).is_none());
        assert!(ada.is_named() && !at("192.0.2.1").is_named());
    }

    #[test]
    fn an_amount_for_each_caller_shrinks_with_what_is_free() {
        let shares = Shares::new(100, Portion::UpTo(10));
        let held: Vec<_> = (0..20).map(|name| fill(&shares, &subject(name))).collect();
        let counts: Vec<usize> = held.iter().map(Vec::len).collect();
        assert_eq!((counts[0], counts[5]), (10, 10));
        assert!(counts.is_sorted_by(|a, b| a >= b) && counts[19] == 1, "{counts:?}");
        assert!(shares.take(subject("new"), 1).is_ok());
    }

    #[test]
    fn parties_have_names_of_their_own_and_anonymous_callers_are_networks() {
        let named = Principal { subject: "192.0.2.1".into(), ..Principal::local() };
        let at = |principal: &Principal, address: &str| {
            Claimant::of(principal, Some(address.parse().unwrap())).parties().collect::<Vec<_>>()
        };
        assert_eq!(at(&named, "192.0.2.7"), [("subject 192.0.2.1".to_owned(), 1)]);
        assert_eq!(at(&Principal::local(), "192.0.2.1"), [("network 192.0.2.1".to_owned(), 1)]);
        assert_eq!(at(&Principal::local(), "127.0.0.1"), []);
        let networks = at(&Principal::local(), "2001:db8:1:2:3::4");
        assert_eq!(networks.iter().map(|(_, times)| *times).collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!(networks[2].0, "network 2001:db8:1::/48");
    }

    #[test]
    fn amounts_count_and_not_only_callers() {
        let shares = Shares::new(100, Portion::QuarterOfFree);
        let mut first = shares.take(subject(1), 10).unwrap();
        let over = "25 is more than a quarter of the 75 that would stay free";
        assert_eq!(shares.take(subject(1), 15).unwrap_err(), NoShare::Share, "{over}");
        assert_eq!(first.grow(15), Err(NoShare::Share), "{over}");
        let mut alone = shares.take(subject(4), 10).unwrap();
        alone.grow_whole(25).unwrap();
        drop(alone);
        assert!(shares.take(subject(2), 30).is_ok(), "a first one needs room only");
        assert_eq!(shares.take(subject(3), 101).unwrap_err(), NoShare::Room);
        assert_eq!((first.grow(5), shares.taken()), (Ok(()), 15));
        drop(first);
        assert_eq!(shares.taken(), 0);
    }

    #[test]
    fn what_the_system_has_left_is_free_where_that_is_less() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let available = |mib: u64| {
            let text = format!("MemTotal: 0 kB\nMemAvailable: {} kB\n", mib << 10);
            std::fs::write(root.path().join("proc/meminfo"), text).unwrap();
            Box::leak(Box::new(FreeMemory::new(root.path())))
        };
        let shares = |mib: u64, unit: u64| {
            let (portion, memory) = (Portion::AsMuchAsFree, Some(Memory { of: available(mib), unit }));
            Arc::new(Shares { most: 512 << 20, portion, memory, taken: Mutex::default() })
        };
        assert_eq!(shares(0, 1).take(subject("ada"), 1).err(), Some(NoShare::Room));
        for unit in [1, 1 << 20] {
            let short = shares(10, unit);
            let four = (4 << 20) / unit as usize;
            let _ada = short.take(subject("ada"), four).unwrap();
            for _ in 0..100 {
                let refused = short.take(subject("ada"), four).err();
                assert_eq!(refused, Some(NoShare::Share), "and nobody has less for it");
            }
            let bob = short.take(subject("bob"), four).unwrap();
            assert_eq!(short.take(subject("eve"), four).err(), Some(NoShare::Room));
            drop(bob);
            assert!(short.take(subject("eve"), four).is_ok());
        }
    }
}
