//! Keys and the tokens signed with them.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    Clock, ManualClock, Sealer, SystemEntropy,
    keys::{
        Algorithm, Claims, Expected, Jwk, JwkSet, KeyError, KeyRing, RingError, RingOptions, SigningKey,
        Token, TokenError, VerifyingKey, sign,
    },
    store::{MemoryStore, Store},
};
use serde_json::json;

use crate::support::rsa_jwk;

struct Rings {
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
}

impl Rings {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::from_system());
        Self { store: Arc::new(MemoryStore::new(clock.clone())), clock }
    }

    async fn open(&self, options: RingOptions) -> KeyRing {
        let sealer = Arc::new(Sealer::from_secret(b"s"));
        KeyRing::open(self.store.clone(), sealer, self.clock.clone(), Arc::new(SystemEntropy), options)
            .await
            .unwrap()
    }
}

fn claims(now_s: u64) -> Claims {
    let value = json!({"iss": "https://as.example", "aud": "https://rs.example/mcp", "sub": "u", "iat": now_s, "exp": now_s + 900});
    value.as_object().unwrap().clone()
}

fn expected(now_s: u64) -> Expected<'static> {
    Expected {
        types: &["at+jwt"],
        issuer: "https://as.example",
        audiences: &["https://rs.example/mcp"],
        now_s,
    }
}

#[tokio::test]
async fn j01_the_next_key_is_published_before_it_signs_and_no_verification_fails() {
    let rings = Rings::new();
    let ring = rings.open(RingOptions { rotation_days: 1, ..RingOptions::default() }).await;
    let first = ring.snapshot().await.signing().kid().to_owned();
    let mut published: Option<(String, u64)> = None;
    let mut signed_with = vec![first.clone()];
    for _ in 0..400 {
        rings.clock.advance(Duration::from_secs(240));
        let now = rings.clock.now_ms();
        let snapshot = ring.snapshot().await;
        if let Some(next) = snapshot.keys().iter().find(|key| key.active_from_ms > now) {
            published.get_or_insert((next.kid.clone(), now));
        }
        let signing = snapshot.signing().kid().to_owned();
        if signed_with.last() != Some(&signing) {
            let (kid, since) = published.take().expect("a key that signs was published before");
            assert_eq!(kid, signing);
            assert!(now - since >= 300_000, "longer than anyone keeps the key set");
            signed_with.push(signing);
        }
        let token = sign(snapshot.signing(), "at+jwt", &claims(now / 1000));
        snapshot.verify(&Token::parse(&token).unwrap(), &expected(now / 1000)).unwrap();
    }
    assert_eq!(signed_with.len(), 2, "400 times 4 minutes hold one rotation");
}

#[tokio::test]
async fn j02_a_retired_key_verifies_until_its_last_token_is_expired_and_old_keys_are_few() {
    let rings = Rings::new();
    let options =
        RingOptions { rotation_days: 1, token_life: Duration::from_secs(900), ..RingOptions::default() };
    let ring = rings.open(options).await;
    let before = ring.snapshot().await;
    let token = sign(before.signing(), "at+jwt", &claims(rings.clock.now_s()));
    ring.rotate_now().await.unwrap();
    let after = ring.snapshot().await;
    assert_ne!(before.signing().kid(), after.signing().kid());
    rings.clock.advance(Duration::from_secs(890));
    let now = rings.clock.now_s();
    ring.snapshot().await.verify(&Token::parse(&token).unwrap(), &expected(now)).unwrap();
    rings.clock.advance(Duration::from_secs(400));
    assert!(ring.snapshot().await.verifying(before.signing().kid()).is_none(), "served and gone");
    for _ in 0..10 {
        ring.rotate_now().await.unwrap();
        rings.clock.advance(Duration::from_secs(1));
    }
    assert!(ring.snapshot().await.keys().len() <= 1 + 3, "one signs and at most maxKeys are kept");
}

#[tokio::test]
async fn j03_two_instances_that_find_a_rotation_due_make_one_key() {
    let rings = Rings::new();
    let options = RingOptions { rotation_days: 1, ..RingOptions::default() };
    let (one, two) = (rings.open(options.clone()).await, rings.open(options).await);
    assert_eq!(one.snapshot().await.signing().kid(), two.snapshot().await.signing().kid());
    rings.clock.advance(Duration::from_secs(86_400));
    let (a, b) = tokio::join!(one.snapshot(), two.snapshot());
    assert_eq!(a.keys().len(), 2);
    rings.clock.advance(Duration::from_secs(31));
    let (a, b) = (one.snapshot().await, {
        drop((a, b));
        two.snapshot().await
    });
    assert_eq!(a.keys(), b.keys());
    rings.clock.advance(Duration::from_secs(1000));
    assert_eq!(one.snapshot().await.signing().kid(), two.snapshot().await.signing().kid());
}

#[tokio::test]
async fn j07_a_configured_set_rotates_by_its_order_and_a_key_that_signs_for_too_long_is_overdue() {
    let rings = Rings::new();
    let [old, new] = [(), ()].map(|()| Jwk::generate(Algorithm::ES256).unwrap());
    let set = |keys: &[&Jwk]| RingOptions {
        pinned: keys.iter().map(|key| (*key).clone()).collect(),
        rotation_days: 30,
        ..RingOptions::default()
    };
    let ring = rings.open(set(&[&old])).await;
    let before = ring.snapshot().await;
    let token = sign(before.signing(), "at+jwt", &claims(rings.clock.now_s()));
    rings.clock.advance(Duration::from_secs(30 * 86_400));
    assert_eq!(ring.overdue_days(&*ring.snapshot().await), None);
    rings.clock.advance(Duration::from_secs(86_400));
    assert_eq!(ring.overdue_days(&*ring.snapshot().await), Some(31));

    let ring = rings.open(set(&[&new, &old])).await;
    let after = ring.snapshot().await;
    assert_eq!(Some(after.signing().kid()), new.kid.as_deref(), "the first signs");
    assert_eq!(ring.overdue_days(&after), None);
    let parsed = Token::parse(&token).unwrap();
    assert!(parsed.verify(after.verifying(before.signing().kid()).unwrap()).is_ok(), "the old one verifies");
}

#[tokio::test]
async fn a_key_is_retired_when_there_is_one_that_the_servers_made() {
    let rings = Rings::new();
    let ring = rings.open(RingOptions::default()).await;
    let first = ring.snapshot().await.signing().kid().to_owned();
    assert!(matches!(ring.retire("none").await, Err(RingError::Unknown)));
    let left = ring.retire(&first).await.unwrap();
    assert!(left.verifying(&first).is_none() && left.signing().kid() != first);
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    let kid = key.public().kid.unwrap();
    let pinned = rings.open(RingOptions { pinned: vec![key], ..RingOptions::default() }).await;
    assert!(matches!(pinned.retire(&kid).await, Err(RingError::Pinned)));
}

#[test]
fn j04_a_key_is_named_by_its_thumbprint() {
    // The example of RFC 7638 §3.1.
    let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    let key = Jwk { kty: "RSA".into(), n: Some(n.into()), e: Some("AQAB".into()), ..Jwk::default() };
    assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    let (one, two) = (Jwk::generate(Algorithm::ES256).unwrap(), Jwk::generate(Algorithm::ES256).unwrap());
    assert_ne!(one.thumbprint(), two.thumbprint());
    assert_eq!(SigningKey::from_jwk(&one).unwrap().kid(), one.thumbprint());
}

#[tokio::test]
async fn j05_a_removed_key_is_refused_everywhere_after_the_next_look() {
    let rings = Rings::new();
    let (one, two) = (rings.open(RingOptions::default()).await, rings.open(RingOptions::default()).await);
    let bad = one.snapshot().await.signing().kid().to_owned();
    assert!(two.snapshot().await.verifying(&bad).is_some());
    let now = one.remove(&bad).await.unwrap();
    assert!(now.verifying(&bad).is_none() && now.signing().kid() != bad);
    rings.clock.advance(Duration::from_secs(31));
    assert!(two.snapshot().await.verifying(&bad).is_none());
}

#[tokio::test]
async fn j06_stored_keys_are_encrypted_and_never_published_or_printed() {
    let rings = Rings::new();
    let ring = rings.open(RingOptions::default()).await;
    let held = rings.store.get(&gatewright_auth::store::Key::single("keys")).await.unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&held).contains("\"d\""));
    let jwks = ring.snapshot().await.jwks().clone();
    for member in ["\"d\"", "\"p\"", "\"q\"", "\"dp\"", "\"dq\"", "\"qi\"", "\"k\""] {
        assert!(!jwks.contains(member), "{member} is not published");
    }
    let private = Jwk::generate(Algorithm::ES256).unwrap();
    let d = private.d.clone().unwrap();
    let printed = format!("{private:?} {:?} {ring:?}", SigningKey::from_jwk(&private).unwrap());
    assert!(!printed.contains(&d));
    let other = Arc::new(Sealer::from_secret(b"other"));
    let entropy = Arc::new(SystemEntropy);
    let opened =
        KeyRing::open(rings.store.clone(), other, rings.clock.clone(), entropy, RingOptions::default()).await;
    assert!(opened.is_err(), "another secret opens nothing");
}

#[tokio::test]
async fn j07_a_configured_key_signs_and_its_predecessor_still_verifies() {
    let rings = Rings::new();
    let pinned =
        |jwk: &Jwk| RingOptions { pinned: vec![jwk.clone()], rotation_days: 1, ..RingOptions::default() };
    let (old, new) = (rsa_jwk(), Jwk::generate(Algorithm::EdDSA).unwrap());
    let ring = rings.open(pinned(&old)).await;
    assert_eq!(ring.snapshot().await.signing().algorithm(), Algorithm::RS256);
    rings.clock.advance(Duration::from_secs(5 * 86_400));
    assert_eq!(ring.snapshot().await.keys().len(), 1, "a configured key is not rotated");
    let ring = rings.open(pinned(&new)).await;
    let snapshot = ring.snapshot().await;
    assert_eq!(snapshot.signing().kid(), new.thumbprint());
    assert!(snapshot.verifying(&old.thumbprint()).is_some(), "its tokens live on");
}

#[test]
fn e08_and_e09_unusable_signing_keys_say_why() {
    let read =
        |text: &str| JwkSet::parse(text).and_then(|set| SigningKey::from_jwk(&set.keys[0])).map(|_| ());
    assert!(matches!(read("no json"), Err(KeyError::Malformed(_))));
    assert!(matches!(read("{}"), Err(KeyError::Malformed(_))));
    assert!(matches!(read(r#"{"keys":[]}"#), Err(KeyError::Malformed(_))));
    let text = |jwk: &Jwk| serde_json::to_string(jwk).unwrap();
    assert_eq!(read(&text(&rsa_jwk().public())), Err(KeyError::PublicOnly));
    let weak = Jwk { n: Some("g".repeat(171)), ..rsa_jwk() };
    assert_eq!(read(&text(&weak)), Err(KeyError::Weak), "1024 bits");
    let symmetric = r#"{"kty":"oct","k":"c2VjcmV0","alg":"HS256","d":"x"}"#;
    assert!(matches!(read(symmetric), Err(KeyError::Unsupported(_))));
    let wrong = Jwk { alg: Some("ES256".into()), ..rsa_jwk() };
    assert!(matches!(read(&text(&wrong)), Err(KeyError::Unsupported(_))));
    let damaged = Jwk { d: Some("AAAA".into()), ..rsa_jwk() };
    assert_eq!(read(&text(&damaged)), Err(KeyError::Damaged));
    let nameless = Jwk { kid: None, ..rsa_jwk() };
    assert_eq!(SigningKey::from_jwk(&nameless).unwrap().kid(), nameless.thumbprint());
    assert!(VerifyingKey::from_jwk(&weak).is_err(), "f19: a weak key verifies nothing either");
}

#[test]
fn e11_tokens_of_every_algorithm_verify_and_only_with_their_own_key() {
    let keys =
        [rsa_jwk(), Jwk::generate(Algorithm::ES256).unwrap(), Jwk::generate(Algorithm::EdDSA).unwrap()];
    for (n, jwk) in keys.iter().enumerate() {
        let token = sign(&SigningKey::from_jwk(jwk).unwrap(), "at+jwt", &claims(1000));
        for (m, other) in keys.iter().enumerate() {
            let verified = Token::parse(&token).unwrap().verify(&VerifyingKey::from_jwk(other).unwrap());
            assert_eq!(verified.is_ok(), n == m);
        }
        let changed = token.replacen('.', ".e30", 1);
        let verified = Token::parse(&changed).unwrap().verify(&VerifyingKey::from_jwk(jwk).unwrap());
        assert_eq!(verified.unwrap_err(), TokenError::Signature);
    }
}
