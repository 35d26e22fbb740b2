use super::*;
use crate::MemoryStore;

const DIMENSIONS: usize = 16;

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A vector of length one.
    fn vector(&mut self) -> Vec<f32> {
        let some: Vec<f32> = (0..DIMENSIONS).map(|_| self.below(2001) as f32 / 1000.0 - 1.0).collect();
        let length = some.iter().map(|value| value * value).sum::<f32>().sqrt();
        some.iter().map(|value| value / length).collect()
    }
}

fn key(number: u64) -> Key {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    Key(key)
}

/// A store with some vectors in its graph and none beside it.
async fn filled(path: &Path, count: u64) -> LargeStore {
    let store = LargeStore::open(path, DIMENSIONS, 10).unwrap();
    let mut random = Random(7);
    store.put((0..count).map(|number| (key(number), random.vector())).collect()).await.unwrap();
    store.settled().await;
    assert_eq!(store.in_graph(), count as usize);
    store
}

#[tokio::test]
async fn keeps_the_contract_of_a_store_with_few_vectors_and_with_many() {
    for exact in [0, 1, 2, 50_000] {
        let folder = tempfile::tempdir().unwrap();
        let store = LargeStore::open(folder.path().join("deep/v.bin"), 3, exact).unwrap();
        super::super::contract::check(&store, true).await;
    }
}

#[tokio::test]
async fn after_any_changes_it_finds_what_comparing_all_finds() {
    for seed in 1..=12 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.bin");
        let exact = MemoryStore::new(DIMENSIONS);
        let mut store = LargeStore::open(&path, DIMENSIONS, 20).unwrap();
        let mut random = Random(seed * 0x1234_5677);
        for _ in 0..60 {
            let some = |random: &mut Random| -> Vec<Key> {
                (0..1 + random.below(20)).map(|_| key(random.below(120))).collect()
            };
            match random.below(10) {
                0 => store.settled().await,
                1 => {
                    store.close().await;
                    store = LargeStore::open(&path, DIMENSIONS, 20).unwrap();
                }
                2..=4 => {
                    let keys = some(&mut random);
                    store.forget(&keys).await.unwrap();
                    exact.forget(&keys).await.unwrap();
                }
                _ => {
                    let new: Vec<_> =
                        some(&mut random).into_iter().map(|key| (key, random.vector())).collect();
                    store.put(new.clone()).await.unwrap();
                    exact.put(new).await.unwrap();
                }
            }
            assert_eq!(store.len(), exact.len());
            let keys: Vec<Key> = (0..120).map(key).collect();
            assert_eq!(store.missing(&keys).await.unwrap(), exact.missing(&keys).await.unwrap());
            let (query, among) = (random.vector(), some(&mut random));
            for among in [None, Some(among.as_slice())] {
                let wanted = exact.nearest(&query, 7, among).await.unwrap();
                let found = store.nearest(&query, 7, among).await.unwrap();
                assert_eq!(found.len(), wanted.len(), "{found:?} {wanted:?}");
                for (found, wanted) in found.iter().zip(&wanted) {
                    assert!((found.1 - wanted.1).abs() < 1e-4, "{found:?} {wanted:?}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_graph_cut_short_or_changed_is_started_anew_and_told_apart_from_a_missing_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.bin");
    drop(filled(&path, 40).await);
    let file = graph_file(&path);
    let whole = fs::read(&file).unwrap();
    let opened = || LargeStore::open(&path, DIMENSIONS, 10).unwrap().len();
    let new = folder.path().join("new");
    let put = |bytes: &[u8]| {
        fs::write(&new, bytes).unwrap();
        fs::rename(&new, &file).unwrap();
    };
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        put(&whole[..length]);
        assert_eq!(opened(), 0, "cut to {length}");
    }
    for at in (0..whole.len()).step_by(61).chain([whole.len() - 1]) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        put(&changed);
        assert_eq!(opened(), 0, "byte {at} changed");
    }
    put(b"");
    let store = LargeStore::open(&path, DIMENSIONS, 10).unwrap();
    let keys: Vec<Key> = (0..40).map(key).collect();
    assert_eq!(store.missing(&keys).await.unwrap().len(), 40, "all are to be made again");
    put(&whole);
    assert_eq!(opened(), 40);
    assert_eq!(LargeStore::open(&path, 8, 10).unwrap().len(), 0, "other dimensions");
}

#[tokio::test]
async fn a_graph_that_lost_most_of_its_vectors_goes_back_to_comparing_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.bin");
    let store = filled(&path, 40).await;
    let gone: Vec<Key> = (0..35).map(key).collect();
    store.forget(&gone).await.unwrap();
    store.settled().await;
    assert_eq!((store.len(), store.in_graph()), (5, 0));
    assert!(!graph_file(&path).exists());
    store.put(vec![(key(1), Random(3).vector())]).await.unwrap();
    drop(store);
    assert_eq!(LargeStore::open(&path, DIMENSIONS, 10).unwrap().len(), 6);
}

#[tokio::test]
async fn a_removed_vector_stays_removed_after_a_restart_and_can_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.bin");
    let store = filled(&path, 40).await;
    store.forget(&[key(3)]).await.unwrap();
    drop(store);
    let store = LargeStore::open(&path, DIMENSIONS, 10).unwrap();
    assert_eq!((store.len(), store.in_graph()), (39, 40), "the graph was not made anew for one vector");
    assert_eq!(store.missing(&[key(3), key(4)]).await.unwrap(), [key(3)]);
    let all = store.nearest(&Random(5).vector(), 100, None).await.unwrap();
    assert!(all.len() == 39 && all.iter().all(|(found, _)| *found != key(3)));
    let vector = Random(99).vector();
    store.put(vec![(key(3), vector.clone())]).await.unwrap();
    assert_eq!(store.nearest(&vector, 1, None).await.unwrap()[0].0, key(3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_find_what_is_always_there_while_others_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(filled(&folder.path().join("v.bin"), 200).await);
    let steady = Random(42).vector();
    store.put(vec![(key(1_000), steady.clone())]).await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    // More readers than searches may run at a time.
    let readers: Vec<_> = (0..100)
        .map(|_| {
            let (store, steady, done) = (Arc::clone(&store), steady.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                let mut times = 0;
                while !done.load(Ordering::Relaxed) || times == 0 {
                    assert_eq!(store.nearest(&steady, 5, None).await.unwrap()[0].0, key(1_000));
                    let among: Vec<Key> = (990..1_010).map(key).collect();
                    assert_eq!(store.nearest(&steady, 5, Some(&among)).await.unwrap()[0].0, key(1_000));
                    times += 1;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let mut random = Random(11);
    for round in 0..12_u64 {
        let numbers = round * 30..round * 30 + 60;
        store.put(numbers.clone().map(|number| (key(number), random.vector())).collect()).await.unwrap();
        store.forget(&numbers.take(20).map(key).collect::<Vec<_>>()).await.unwrap();
        store.settled().await;
    }
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

/// Puts and removes vectors in the folder it is started in, telling after each change how far it is.
#[tokio::test]
#[ignore = "never ends; run as a process of its own and killed by the test below"]
async fn change_vectors_until_killed() {
    let store = LargeStore::open("v.bin", DIMENSIONS, 50).unwrap();
    for round in 0_u64.. {
        let mut random = Random(round + 1);
        store
            .put((round * 30..round * 30 + 30).map(|number| (key(number), random.vector())).collect())
            .await
            .unwrap();
        if round % 3 == 0 {
            store.forget(&[key(round * 30)]).await.unwrap();
        }
        replace(Path::new("rounds"), &(round + 1).to_le_bytes()).unwrap();
    }
}

#[tokio::test]
async fn kill_9_at_any_moment_loses_nothing_that_was_put() {
    let folder = tempfile::tempdir().unwrap();
    let rounds = || {
        let bytes = fs::read(folder.path().join("rounds")).unwrap_or_default();
        bytes.try_into().map_or(0, u64::from_le_bytes)
    };
    let graph = || fs::metadata(folder.path().join("v.bin.usearch")).and_then(|file| file.modified()).ok();
    for kill in 0..12_u64 {
        for file in fs::read_dir(folder.path()).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "store::large::tests::change_vectors_until_killed", "--ignored"])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        // After the graph was written once, at another moment of its next writing each time.
        let mut seen = None;
        while rounds() < 4 + kill || seen.is_none() || graph() == seen {
            assert!(start.elapsed().as_secs() < 60 && child.try_wait().unwrap().is_none(), "it does nothing");
            seen = seen.or_else(graph);
            tokio::task::yield_now().await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let done = rounds();
        let store = LargeStore::open(folder.path().join("v.bin"), DIMENSIONS, 50).unwrap();
        let kept: Vec<Key> = (0..done * 30).filter(|number| number % 90 != 0).map(key).collect();
        assert_eq!(store.missing(&kept).await.unwrap(), [], "after {done} rounds");
        let mut random = Random(done);
        // The first of a round may have been removed again.
        let (_, second) = (random.vector(), random.vector());
        assert!(store.nearest(&second, 1, None).await.unwrap()[0].1 > 0.97);
    }
}

#[tokio::test]
async fn nearly_all_of_the_nearest_are_found_with_and_without_a_filter() {
    let folder = tempfile::tempdir().unwrap();
    let store = filled(&folder.path().join("v.bin"), 3_000).await;
    let mut random = Random(7);
    let exact = MemoryStore::new(DIMENSIONS);
    exact.put((0..3_000).map(|number| (key(number), random.vector())).collect()).await.unwrap();
    let half: Vec<Key> = (0..1_500).map(key).collect();
    let graph = store.inner.read().graph.clone().unwrap();
    let labels: Vec<u32> = half.iter().map(|key| graph.label(key).unwrap()).collect();
    let among = Labels::new(&graph, &labels);
    let (mut found, mut of_half) = (0, 0);
    for _ in 0..50 {
        let query = random.vector();
        let same = |found: &[(Key, f32)], wanted: &[(Key, f32)]| {
            found.iter().filter(|(key, _)| wanted.iter().any(|(other, _)| other == key)).count()
        };
        let wanted = exact.nearest(&query, 10, None).await.unwrap();
        found += same(&store.nearest(&query, 10, None).await.unwrap(), &wanted);
        let wanted = exact.nearest(&query, 10, Some(&half)).await.unwrap();
        let near = graph.near(&small(&query), 10, &FxHashSet::default(), Some(&among)).await.unwrap();
        of_half += same(&near, &wanted);
        let compared = graph.nearest_of(&small(&query), 10, &labels).await.unwrap();
        assert_eq!(same(&compared, &wanted), 10, "each of them is compared");
    }
    assert!(found > 490 && of_half > 490, "{found} and {of_half} of 500");
}

#[tokio::test]
async fn the_first_filter_that_leaves_many_reads_all_vectors_once_and_beside_the_runtime() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(filled(&folder.path().join("v.bin"), 3_000).await);
    let graph = store.inner.read().graph.clone().unwrap();
    let (query, among) = (Random(5).vector(), (0..1_000).map(key).collect::<Vec<_>>());
    {
        // One that gives up does not make the others begin anew.
        let mut first = std::pin::pin!(store.nearest(&query, 5, Some(&among)));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let _ = first.as_mut().poll(&mut context);
    }
    let all: Vec<_> = (0..20)
        .map(|_| {
            let (store, query, among) = (Arc::clone(&store), query.clone(), among.clone());
            tokio::spawn(async move { store.nearest(&query, 5, Some(&among)).await.unwrap() })
        })
        .collect();
    let mut found = Vec::new();
    for one in all {
        found.push(one.await.unwrap());
    }
    assert!(found.iter().all(|one| *one == found[0] && one.len() == 5));
    let readers = graph.readers.lock().unwrap().clone();
    assert_eq!(readers.len(), 1, "they were read once");
    assert_ne!(readers[0], std::thread::current().id(), "and not on the runtime's thread");
}
