use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use gatewright_testing::{Algorithm, Auth, CreateTokenOptions, Defect, TokenFactory, TokenFactoryOptions};
use serde_json::Value;

fn part(token: &str, at: usize) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap()).unwrap()
}

/// Verifies a signature with the key that the header names, like any verifier.
fn verifies(token: &str, jwks: &Value) -> bool {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
    let kid = part(token, 0)["kid"].clone();
    let key = jwks["keys"].as_array().unwrap().iter().find(|key| key["kid"] == kid).unwrap();
    let number = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    RsaPublicKeyComponents { n: number("n"), e: number("e") }
        .verify(&RSA_PKCS1_2048_8192_SHA256, signed.as_bytes(), &signature)
        .is_ok()
}

#[test]
fn tokens_carry_the_defaults_of_the_contract() {
    let factory = TokenFactory::default();
    assert_eq!(
        (factory.get_issuer(), factory.get_audience()),
        ("https://test-issuer.local", "test-audience")
    );
    let token = factory.create_admin_token();
    let claims = part(&token, 1);
    assert_eq!((&claims["sub"], &claims["scope"]), (&"test-admin".into(), &"*".into()));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    assert_eq!(part(&factory.create_user_token(), 1)["scope"], "read write");
    assert_eq!(part(&factory.create_anonymous_token(), 1).get("scope"), None);
    assert!(verifies(&token, &factory.get_public_jwks()));
}

#[test]
fn options_replace_the_defaults() {
    let options =
        TokenFactoryOptions { issuer: "https://i".into(), audience: "a".into(), expires_in_seconds: 60 };
    let factory = TokenFactory::new(options);
    let wanted =
        CreateTokenOptions::new("ada").scopes(["x", "y"]).email("a@b.c").name("Ada").claim("tenant", 7);
    let claims = part(&factory.create_test_token(&wanted), 1);
    for (name, value) in [
        ("iss", "https://i"),
        ("aud", "a"),
        ("sub", "ada"),
        ("scope", "x y"),
        ("email", "a@b.c"),
        ("name", "Ada"),
    ] {
        assert_eq!(claims[name], value);
    }
    assert_eq!(claims["tenant"], 7);
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 60);
    let short = part(&factory.create_test_token(&wanted.expires_in(5)), 1);
    assert_eq!(short["exp"].as_i64().unwrap() - short["iat"].as_i64().unwrap(), 5);
}

#[test]
fn invalid_tokens_are_invalid_in_one_way_only() {
    let auth = Auth::default();
    let expired = auth.create_expired_token(&auth.users.user);
    assert!(verifies(&expired, &auth.get_jwks()));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    assert!(part(&expired, 1)["exp"].as_i64().unwrap() < now);
    let forged = auth.create_invalid_token(&auth.users.user);
    assert!(!verifies(&forged, &auth.get_jwks()));
    assert_eq!(part(&forged, 1)["sub"], "test-user");
    assert!(part(&forged, 1)["exp"].as_i64().unwrap() > now);
    assert_eq!(auth.users.read_only.scopes, ["read"]);
}

#[test]
fn every_algorithm_signs_tokens_that_its_key_verifies() {
    for algorithm in Algorithm::ALL {
        let factory = TokenFactory::default().algorithm(algorithm);
        let token = factory.create_user_token();
        assert_eq!(part(&token, 0)["alg"], algorithm.name());
        let published = factory.get_public_jwks()["keys"].as_array().unwrap().len();
        let name = algorithm.name();
        assert_eq!(published, usize::from(!name.starts_with("HS") && name != "none"), "{name}");
        assert_eq!(factory.verify(&token).is_ok(), algorithm != Algorithm::None, "{name}");
        let forged = factory.create_token_with_invalid_signature(&CreateTokenOptions::new("eve"));
        assert!(factory.verify(&forged).is_err(), "{name}");
    }
}

#[test]
fn a_broken_token_has_one_defect() {
    let factory = TokenFactory::default();
    let options = CreateTokenOptions::new("eve").scopes(["read"]);
    for (name, defect) in Defect::ALL {
        let token = factory.create_broken_token(&options, defect);
        let by_key = token.split('.').count() == 3 && verifies_named(&token, &factory.get_public_jwks());
        let signed = !matches!(
            defect,
            Defect::Signature
                | Defect::Tampered
                | Defect::Kid
                | Defect::AlgNone
                | Defect::AlgConfusion
                | Defect::EmbeddedKey
                | Defect::Malformed
        );
        assert_eq!(by_key, signed, "{name}");
        if !matches!(defect, Defect::NotYetValid | Defect::IdToken | Defect::Critical | Defect::Kid) {
            assert!(factory.verify(&token).is_err(), "{name}");
        }
        assert_eq!(name.parse(), Ok(defect));
    }
    let error = "expird".parse::<Defect>().unwrap_err();
    assert!(error.contains("did you mean `expired`"), "{error}");
}

/// As [`verifies`], false for a key or an algorithm that the set does not have.
fn verifies_named(token: &str, jwks: &Value) -> bool {
    let header = part(token, 0);
    header["alg"] == "RS256" && header["kid"] == jwks["keys"][0]["kid"] && verifies(token, jwks)
}

#[test]
fn a_key_file_serves_the_algorithms_of_its_kind() {
    let dir = tempfile::tempdir().unwrap();
    let factory =
        |name: &str, algorithm| TokenFactory::default().key_file_for(dir.path().join(name), algorithm);
    let (rs, ps) = (factory("rsa", Algorithm::RS256).unwrap(), factory("rsa", Algorithm::PS512).unwrap());
    assert_eq!(rs.get_public_jwks()["keys"][0]["n"], ps.get_public_jwks()["keys"][0]["n"]);
    let error = factory("rsa", Algorithm::ES256).unwrap_err().to_string();
    assert!(error.contains("holds a key for RS256, not for ES256"), "{error}");
    for algorithm in [Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA, Algorithm::HS384] {
        let name = algorithm.name();
        let token = factory(name, algorithm).unwrap().create_user_token();
        assert!(factory(name, algorithm).unwrap().verify(&token).is_ok(), "{name}");
    }
    let found = TokenFactory::default().key_file(dir.path().join("ES384")).unwrap();
    assert_eq!(part(&found.create_user_token(), 0)["alg"], "ES384");
}

#[tokio::test]
#[ignore = "needs `npm install jose` in `tests/clients`: see docs/testing/own-tests.md"]
async fn jose_in_node_accepts_valid_tokens_and_rejects_invalid_ones() {
    let auth = Auth::default();
    let script = format!("{}/tests/clients/verify.mjs", env!("CARGO_MANIFEST_DIR"));
    for (token, verdict) in [
        (auth.create_token(&auth.users.admin), "test-admin"),
        (auth.create_expired_token(&auth.users.admin), "ERR_JWT_EXPIRED"),
        (auth.create_invalid_token(&auth.users.admin), "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"),
    ] {
        let args = [script.clone(), auth.get_jwks().to_string(), token];
        let output = tokio::process::Command::new("node").args(args).output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), verdict, "{output:?}");
    }
}
