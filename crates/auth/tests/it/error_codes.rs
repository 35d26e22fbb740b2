//! The list of error codes is that of the code.

use std::{collections::BTreeSet, path::Path};

use gatewright_auth::ERRORS;

/// Prefixes of the OAuth, OpenID and DPoP codes that these endpoints use.
const FRONTS: [&str; 13] = [
    "invalid_",
    "unauthorized_client",
    "unsupported_",
    "access_denied",
    "login_required",
    "consent_required",
    "interaction_required",
    "insufficient_scope",
    "temporarily_unavailable",
    "use_dpop_nonce",
    "request_not_supported",
    "registration_not_supported",
    "not_found",
];

/// The string literals of the sources that look like a code.
fn written(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, into);
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            let literals =
                text.split('"').filter(|part| part.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'));
            into.extend(
                literals.filter(|part| FRONTS.iter().any(|front| part.starts_with(front))).map(str::to_owned),
            );
        }
    }
}

#[test]
fn every_error_code_that_is_sent_is_listed_and_no_other() {
    let mut sent = BTreeSet::new();
    written(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut sent);
    let listed: Vec<&str> = ERRORS.iter().map(|error| error.code).collect();
    assert!(listed.is_sorted());
    assert_eq!(listed.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), sent);
    for error in ERRORS {
        assert!(error.meaning.ends_with('.') && error.advice.ends_with('.'), "{}", error.code);
    }
}
