use std::{fs, path::Path};

use super::*;

const KEY: Key = Key([7; 16]);

async fn filled(path: &Path) -> ExactStore {
    let store = ExactStore::open(path, 3).unwrap();
    store.put(vec![(KEY, vec![0.0, 1.0, 0.0])]).await.unwrap();
    store
}

#[tokio::test]
async fn keeps_the_contract_of_a_store_in_memory_and_in_a_file() {
    super::super::contract::check(&ExactStore::in_memory(3), true).await;
    let folder = tempfile::tempdir().unwrap();
    let store = ExactStore::open(folder.path().join("deep/v.bin"), 3).unwrap();
    super::super::contract::check(&store, true).await;
}

#[tokio::test]
async fn vectors_of_another_length_are_refused() {
    let store = ExactStore::in_memory(3);
    let error = store.put(vec![(Key([0; 16]), vec![1.0])]).await.unwrap_err();
    assert!(matches!(error, EmbeddingError::Dimension { stored: 3, model: 1 }));
    assert!(store.nearest(&[1.0, 0.0], 1, None).await.is_err());
}

#[tokio::test]
async fn what_was_put_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.bin");
    drop(filled(&path).await);
    let again = ExactStore::open(&path, 3).unwrap();
    assert!(again.missing(&[KEY]).await.unwrap().is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left over");
}

#[tokio::test]
async fn a_file_cut_short_or_changed_anywhere_is_started_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.bin");
    drop(filled(&path).await);
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(ExactStore::open(&path, 3).unwrap().is_empty(), "cut to {length}");
    }
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, changed).unwrap();
        assert!(ExactStore::open(&path, 3).unwrap().is_empty(), "byte {at} changed");
    }
    fs::write(&path, &whole).unwrap();
    assert!(ExactStore::open(&path, 4).unwrap().is_empty(), "other dimensions");
    assert_eq!(ExactStore::open(&path, 3).unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_with_a_vector_of_zeros_is_started_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v.bin");
    let store = filled(&path).await;
    lock_mut(&store.table).put(Key([8; 16]), &[0; 3]);
    store.save().await.unwrap();
    assert!(ExactStore::open(&path, 3).unwrap().is_empty());
}

fn numbered(number: u32) -> Key {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&number.to_be_bytes());
    Key(key)
}

#[tokio::test]
async fn more_than_are_compared_in_place_are_compared_beside_the_runtime_with_the_same_answer() {
    let store = ExactStore::in_memory(2);
    let count = COMPARED_IN_PLACE as u32 + 1;
    let vector = |number: u32| {
        let angle = number as f32 / count as f32;
        vec![angle.cos(), angle.sin()]
    };
    store.put((0..count).map(|number| (numbered(number), vector(number))).collect()).await.unwrap();
    let all: Vec<Key> = (0..count).map(numbered).collect();
    let near = store.nearest(&[1.0, 0.0], 5, None).await.unwrap();
    assert_eq!(near.len(), 5);
    assert_eq!(near, store.nearest(&[1.0, 0.0], 5, Some(&all)).await.unwrap());
    assert_eq!(near, lock(&store.table).nearest(&quantize(&[1.0, 0.0]), 5, None));
    let few = [numbered(1), numbered(count - 1)];
    let found = store.nearest(&[0.0, 1.0], 5, Some(&few)).await.unwrap();
    assert_eq!(found.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [few[1], few[0]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_find_what_is_always_there_while_others_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(filled(&folder.path().join("v.bin")).await);
    let (stop, readers) = (Arc::new(tokio::sync::Notify::new()), 8);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..readers {
        let (store, stop) = (store.clone(), stop.clone());
        tasks.spawn(async move {
            let mut stopped = std::pin::pin!(stop.notified());
            stopped.as_mut().enable();
            loop {
                assert_eq!(store.nearest(&[0.0, 1.0, 0.0], 1, None).await.unwrap()[0].0, KEY);
                tokio::select! {
                    biased;
                    () = stopped.as_mut() => return,
                    () = tokio::task::yield_now() => {}
                }
            }
        });
    }
    for round in 0..12_u32 {
        let keys: Vec<Key> = (round * 10..round * 10 + 30).map(numbered).collect();
        store.put(keys.iter().map(|key| (*key, vec![1.0, 0.0, 0.0])).collect()).await.unwrap();
        store.forget(&keys[..10]).await.unwrap();
        assert_eq!(store.missing(&keys).await.unwrap(), keys[..10]);
    }
    while !tasks.is_empty() {
        stop.notify_waiters();
        tokio::select! {
            Some(ended) = tasks.join_next() => ended.unwrap(),
            () = tokio::task::yield_now() => {}
        }
    }
}
