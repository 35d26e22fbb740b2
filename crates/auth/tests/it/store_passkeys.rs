//! The contract of passkey stores, which `store_contract` runs on all three stores.

use gatewright_auth::store::{AddPasskey, Passkey, PasskeyStore as _, PasskeyUse, Store};

fn passkey(id: &str) -> Passkey {
    Passkey {
        id: id.into(),
        name: "Laptop".into(),
        key: vec![0, 255, 7],
        state: [1; 7],
        backed_up: false,
        transports: 8,
        created_ms: 5,
        used_ms: None,
    }
}

/// The checks.
pub(crate) async fn passkeys(store: &dyn Store) {
    assert_eq!(store.passkeys("user:a").await.unwrap(), None);
    assert_eq!(store.passkey_owner("one").await.unwrap(), None);
    let used = PasskeyUse { before: [1; 7], after: [2; 7], backed_up: true, at_ms: 9 };
    assert!(!store.use_passkey("user:a", "one", used).await.unwrap());
    assert!(!store.remove_passkey("user:a", "one").await.unwrap());
    assert_eq!(store.passkeys("user:a").await.unwrap(), None, "nothing begins by itself");

    assert_eq!(store.add_passkey("user:a", "h", &passkey("one"), 2).await.unwrap(), AddPasskey::Added);
    assert_eq!(store.passkey_owner("one").await.unwrap().as_deref(), Some("user:a"));
    for sub in ["user:a", "user:b"] {
        let twice = store.add_passkey(sub, "h", &passkey("one"), 2).await.unwrap();
        assert_eq!(twice, AddPasskey::Taken, "an id is one user's, once");
    }
    let other = store.add_passkey("user:a", "g", &passkey("two"), 2).await.unwrap();
    assert_eq!(other, AddPasskey::OtherHandle);
    assert_eq!(store.passkey_owner("two").await.unwrap(), None, "a refused id is free again");
    assert_eq!(store.add_passkey("user:a", "h", &passkey("two"), 2).await.unwrap(), AddPasskey::Added);
    assert_eq!(store.add_passkey("user:a", "h", &passkey("three"), 2).await.unwrap(), AddPasskey::Full);
    let set = store.passkeys("user:a").await.unwrap().unwrap();
    assert_eq!((set.handle.as_str(), set.passkeys), ("h", vec![passkey("one"), passkey("two")]));

    assert!(store.use_passkey("user:a", "one", used).await.unwrap());
    assert!(!store.use_passkey("user:a", "one", used).await.unwrap(), "the state it was read in is gone");
    assert!(!store.use_passkey("user:b", "one", used).await.unwrap(), "another user");
    let held = store.passkeys("user:a").await.unwrap().unwrap().passkeys.remove(0);
    assert_eq!((held.state, held.backed_up, held.used_ms), ([2; 7], true, Some(9)));

    assert!(store.rename_passkey("user:a", "two", "Desk \u{1f511} \0").await.unwrap());
    assert!(!store.rename_passkey("user:b", "two", "x").await.unwrap());
    assert!(!store.remove_passkey("user:b", "two").await.unwrap());
    assert!(store.remove_passkey("user:a", "one").await.unwrap());
    assert!(!store.remove_passkey("user:a", "one").await.unwrap());
    assert_eq!(store.passkey_owner("one").await.unwrap(), None);
    let left = store.passkeys("user:a").await.unwrap().unwrap().passkeys;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].name, "Desk \u{1f511} \0");
    assert!(store.remove_passkey("user:a", "two").await.unwrap());
    let anew = store.add_passkey("user:a", "new", &passkey("one"), 1).await.unwrap();
    assert_eq!(anew, AddPasskey::Added, "without passkeys a user may have another handle");
    at_once(store).await;
}

/// Changes that come at the same moment are all made, and one use is one use.
async fn at_once(store: &dyn Store) {
    let ids: Vec<String> = (0..6).map(|n| format!("many-{n}")).collect();
    let adding = ids.iter().map(async |id| store.add_passkey("user:c", "h", &passkey(id), 4).await.unwrap());
    let mut got = futures::future::join_all(adding).await;
    got.retain(|added| *added == AddPasskey::Added);
    let set = store.passkeys("user:c").await.unwrap().unwrap();
    assert_eq!((got.len(), set.passkeys.len()), (4, 4));
    let id = &set.passkeys[0].id;
    let used = PasskeyUse { before: [1; 7], after: [3; 7], backed_up: false, at_ms: 9 };
    let using = (0..6).map(async |_| store.use_passkey("user:c", id, used).await.unwrap());
    let done = futures::future::join_all(using).await;
    assert_eq!(done.into_iter().filter(|done| *done).count(), 1);
    let same = (0..6).map(async |_| store.add_passkey("user:d", "h", &passkey("same"), 4).await.unwrap());
    let mut got = futures::future::join_all(same).await;
    got.retain(|added| *added == AddPasskey::Added);
    assert_eq!(got.len(), 1);
}
