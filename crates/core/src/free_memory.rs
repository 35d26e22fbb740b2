//! Memory that is left for this process: of its container, or of the machine.
//!
//! Budgets in bytes are the same on every machine, and what a kind of data takes may be counted wrong. What the kernel says is left is
//! true for all of it: a gateway that is short of memory refuses large messages instead of being killed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

/// The kernel is asked again after this time.
const SAMPLE_AGE: Duration = Duration::from_millis(20);
/// Bytes that were taken count for this time, and at most twice as long: whoever took them may use them later, as bodies that arrived at once wait to
/// be parsed.
const TURN: Duration = Duration::from_millis(500);
/// Of a container's memory, one part of so many stays free, for workers and for what is not counted.
const CONTAINER_RESERVE: u64 = 4;
/// Bytes of it, at most.
const MOST_CONTAINER_RESERVE: u64 = 512 << 20;
/// Of the machine's memory, one part of so many stays free.
const MACHINE_RESERVE: u64 = 32;
/// Bytes of it, at most.
const MOST_MACHINE_RESERVE: u64 = 128 << 20;

/// Of what a container or the machine has, data leaves one part of so many to runs of scripts.
const RUNS_RESERVE: u64 = 16;
/// Bytes of it, at most.
const MOST_RUNS_RESERVE: u64 = 32 << 20;

static OF_SYSTEM: LazyLock<FreeMemory> = LazyLock::new(|| FreeMemory::new(Path::new("/")));

/// Memory that the kernel says this process can still take, in bytes: the limit of each control group around it (`memory.max`, or
/// `memory.limit_in_bytes` of version 1) without what is used but for file pages, and `MemAvailable` of the machine (`proc_meminfo(5)`); the least
/// of them. A quarter of a limit, 512 MiB at most, and a 32nd of the machine's memory, 128 MiB at most, stay free.
#[derive(Debug)]
pub struct FreeMemory {
    meminfo: PathBuf,
    /// The control groups around the process that have a limit, and those that may get one.
    groups: Vec<ControlGroup>,
    /// Bytes that data leaves to runs of scripts.
    of_runs: OnceLock<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes that were left, and when.
    sample: Option<(Instant, u64)>,
    /// Beginning of the turn under way.
    began: Option<Instant>,
    /// Its number.
    turn: u64,
    /// Bytes that were taken in this turn, and in the one before.
    taken: [u64; 2],
}

/// Bytes that were taken in one turn, of those that are still counted.
#[derive(Debug, Default)]
pub(crate) struct RecentMemory {
    turn: u64,
    bytes: u64,
}

impl RecentMemory {
    /// Adds bytes that were taken later. Those of an earlier turn stay taken until that is over.
    pub(crate) fn add(&mut self, later: Self) {
        let before = if later.turn == self.turn { self.bytes } else { 0 };
        *self = Self { turn: later.turn, bytes: before.saturating_add(later.bytes) };
    }
}

impl FreeMemory {
    /// The memory of this process.
    pub fn of_system() -> &'static Self {
        &OF_SYSTEM
    }

    pub(crate) fn new(root: &Path) -> Self {
        Self {
            meminfo: root.join("proc/meminfo"),
            groups: control_groups(root),
            of_runs: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// Bytes that may be taken now; `u64::MAX` where the kernel does not say.
    pub fn left(&self) -> u64 {
        self.now().0
    }

    /// Bytes that data may take now: some of what is left stays free for runs of scripts, which need a little each, so that the data of one caller keeps nobody's
    /// script from starting.
    pub(crate) fn left_for_data(&self) -> u64 {
        let reserve = || (self.total().unwrap_or(u64::MAX) / RUNS_RESERVE).min(MOST_RUNS_RESERVE);
        self.left().saturating_sub(*self.of_runs.get_or_init(reserve))
    }

    /// Takes `bytes` if they are left. They count as taken for half a second to a second, whatever the kernel says.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<RecentMemory> {
        let (left, mut state) = self.now();
        if bytes > left {
            return None;
        }
        state.taken[0] = state.taken[0].saturating_add(bytes);
        Some(RecentMemory { turn: state.turn, bytes })
    }

    /// Gives back `bytes` that are free again, as far as they are among those of `recent` and still counted. The kernel knows of all others.
    pub(crate) fn give_back(&self, recent: &mut RecentMemory, bytes: u64) {
        let bytes = bytes.min(recent.bytes);
        recent.bytes -= bytes;
        let (_, mut state) = self.now();
        let turns = usize::try_from(state.turn - recent.turn).unwrap_or(usize::MAX);
        if let Some(taken) = state.taken.get_mut(turns) {
            *taken = taken.saturating_sub(bytes);
        }
    }

    /// Returns `true` if `bytes` are left, without taking them.
    pub fn has(&self, bytes: u64) -> bool {
        bytes <= self.left()
    }

    /// Bytes that the container, or else the machine, has in all, if the kernel says.
    pub fn total(&self) -> Option<u64> {
        let machine = self.machine().map(|machine| machine.total);
        self.groups.iter().filter_map(ControlGroup::limit).chain(machine).min()
    }

    /// `most` bytes, but not more than one of `parts` equal parts of what the container, or else the machine, has in all.
    pub fn part(&self, parts: u64, most: usize) -> usize {
        let part = self.total().map_or(u64::MAX, |total| total / parts);
        most.min(usize::try_from(part).unwrap_or(usize::MAX))
    }

    /// Bytes that are left now.
    fn now(&self) -> (u64, MutexGuard<'_, State>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let turns = state.began.map_or(2, |began| (now - began).as_millis() / TURN.as_millis());
        if turns > 0 {
            let before = if turns == 1 { state.taken[0] } else { 0 };
            (state.began, state.taken) = (Some(now), [0, before]);
            state.turn += turns.min(2) as u64;
        }
        let sampled = match state.sample {
            Some((at, left)) if now < at + SAMPLE_AGE => left,
            _ => state.sample.insert((now, self.read())).1,
        };
        let [this, before] = state.taken;
        (sampled.saturating_sub(this).saturating_sub(before), state)
    }

    fn read(&self) -> u64 {
        let machine = self.machine().map(|Machine { total, available }| {
            available.saturating_sub((total / MACHINE_RESERVE).min(MOST_MACHINE_RESERVE))
        });
        let groups = self.groups.iter().filter_map(|group| {
            let limit = group.limit()?;
            let reserve = (limit / CONTAINER_RESERVE).min(MOST_CONTAINER_RESERVE);
            Some(limit.saturating_sub(group.used()?).saturating_sub(reserve))
        });
        groups.chain(machine).min().unwrap_or(u64::MAX)
    }

    fn machine(&self) -> Option<Machine> {
        let text = fs::read_to_string(&self.meminfo).ok()?;
        let bytes = |name: &str| Some(field(&text, name)? << 10);
        Some(Machine { total: bytes("MemTotal:")?, available: bytes("MemAvailable:")? })
    }
}

struct Machine {
    total: u64,
    available: u64,
}

/// The first number behind `name`, which begins a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// A control group, of version 1 or 2.
#[derive(Debug)]
struct ControlGroup {
    limit: PathBuf,
    used: PathBuf,
    stat: PathBuf,
    /// The names in `stat` of file pages.
    cached: [&'static str; 2],
}

impl ControlGroup {
    /// `None` without a limit. Version 1 has a number beyond all memory then.
    fn limit(&self) -> Option<u64> {
        let text = fs::read_to_string(&self.limit).ok()?;
        text.trim().parse().ok().filter(|bytes| *bytes < 1 << 60)
    }

    /// Bytes in use, without file pages, which the kernel can take back.
    fn used(&self) -> Option<u64> {
        let used: u64 = fs::read_to_string(&self.used).ok()?.trim().parse().ok()?;
        let stat = fs::read_to_string(&self.stat).ok()?;
        let cached = self.cached.iter().filter_map(|name| field(&stat, name)).sum();
        Some(used.saturating_sub(cached))
    }
}

/// The control groups of this process for memory, and those around them. In a container, the path may be that of the machine: what exists
/// of it counts, and the root of the container.
fn control_groups(root: &Path) -> Vec<ControlGroup> {
    let of_process = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let groups = of_process.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (mount, files, cached) = match controllers {
            "" => ("sys/fs/cgroup", ["memory.max", "memory.current"], ["inactive_file ", "active_file "]),
            _ if controllers.split(',').any(|controller| controller == "memory") => (
                "sys/fs/cgroup/memory",
                ["memory.limit_in_bytes", "memory.usage_in_bytes"],
                ["total_inactive_file ", "total_active_file "],
            ),
            _ => return None,
        };
        Some((root.join(mount), path, files, cached))
    });
    let around = |(mount, path, [limit, used], cached): (PathBuf, &str, [&str; 2], [&'static str; 2])| {
        let folders = Path::new(path.trim_start_matches('/')).ancestors().map(|below| mount.join(below));
        let found = folders.filter(|folder| folder.join(limit).exists()).map(|folder| ControlGroup {
            limit: folder.join(limit),
            used: folder.join(used),
            stat: folder.join("memory.stat"),
            cached,
        });
        found.collect::<Vec<_>>()
    };
    groups.flat_map(around).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A root folder with these files.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn read(files: &[(&str, &str)]) -> (u64, Option<u64>) {
        let root = root(files);
        let memory = FreeMemory::new(root.path());
        (memory.left(), memory.total())
    }

    const MACHINE: (&str, &str) =
        ("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\nMemAvailable:    8388608 kB\n");

    #[test]
    fn what_is_left_is_that_of_the_machine_or_of_the_narrowest_container_less_a_reserve() {
        assert_eq!(read(&[]), (u64::MAX, None), "a system that does not say");
        assert_eq!(read(&[MACHINE]), ((8192 - 128) * MIB, Some(16384 * MIB)));
        let v2 = [
            MACHINE,
            ("proc/self/cgroup", "0::/pod/gateway\n"),
            ("sys/fs/cgroup/pod/memory.max", "1073741824\n"),
            ("sys/fs/cgroup/pod/memory.current", "524288000\n"),
            (
                "sys/fs/cgroup/pod/memory.stat",
                "anon 1\nfile 2\ninactive_file 52428800\nactive_file 52428800\n",
            ),
            ("sys/fs/cgroup/pod/gateway/memory.max", "max\n"),
            ("sys/fs/cgroup/pod/gateway/memory.current", "1\n"),
            ("sys/fs/cgroup/pod/gateway/memory.stat", "inactive_file 0\n"),
        ];
        assert_eq!(read(&v2), ((1024 - 400 - 256) * MIB, Some(1024 * MIB)));
        let of_container = [
            MACHINE,
            ("proc/self/cgroup", "12:memory,cpu:/docker/abc\n0::/docker/abc\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600"),
            (
                "sys/fs/cgroup/memory/memory.stat",
                "inactive_file 7\ntotal_inactive_file 52428800\ntotal_active_file 0\n",
            ),
        ];
        assert_eq!(read(&of_container), ((256 - 50 - 64) * MIB, Some(256 * MIB)));
        let unlimited = [
            MACHINE,
            ("proc/self/cgroup", "12:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
        ];
        assert_eq!(read(&unlimited), read(&[MACHINE]));
    }

    #[test]
    fn data_leaves_a_part_of_the_memory_to_runs_of_scripts() {
        let root = root(&[("proc/meminfo", "MemTotal: 393216 kB\nMemAvailable: 102400 kB\n")]);
        let memory = FreeMemory::new(root.path());
        // Of 384 MiB, 12 stay free, and 24 are for scripts.
        assert_eq!((memory.left() / MIB, memory.left_for_data() / MIB), (88, 64));
    }

    #[test]
    fn bytes_that_were_taken_count_for_a_turn_or_two_whatever_the_kernel_says() {
        let root = root(&[MACHINE]);
        let memory = FreeMemory::new(root.path());
        let all = memory.left();
        let turns_ago = |turns: u32| memory.state.lock().unwrap().began = Some(Instant::now() - turns * TURN);
        let this_turn = || memory.state.lock().unwrap().began = Some(Instant::now() + 60 * TURN);
        this_turn();
        let mut most = memory.try_take(all - 10).unwrap();
        assert!(memory.try_take(11).is_none() && memory.has(10));
        memory.give_back(&mut most, 20);
        assert!(!memory.has(31));
        let mut rest = memory.try_take(30).unwrap();
        memory.state.lock().unwrap().sample = None;
        assert!(memory.left() == 0 && memory.try_take(0).is_some(), "the kernel was asked again");
        turns_ago(1);
        assert_eq!(memory.left(), 0);
        this_turn();
        memory.give_back(&mut rest, 10);
        assert_eq!(memory.left(), 10);
        rest.add(memory.try_take(10).unwrap());
        memory.give_back(&mut rest, 100);
        assert_eq!(memory.left(), 10, "those of the turn before stay taken");
        turns_ago(2);
        assert_eq!(memory.left(), all);
        this_turn();
        let _new = memory.try_take(100).unwrap();
        memory.give_back(&mut most, all);
        assert_eq!(memory.left(), all - 100, "what was taken long ago is none of what others take now");
    }

    #[test]
    fn this_system_says_what_is_left() {
        let memory = FreeMemory::of_system();
        assert!(!cfg!(target_os = "linux") || memory.left() < memory.total().unwrap());
    }
}
