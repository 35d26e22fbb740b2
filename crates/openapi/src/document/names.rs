//! Names of tools: injective, and the same whatever else the document has.

use std::collections::{HashMap, HashSet};

use http::Method;
use sha2::{Digest as _, Sha256};

/// Longest name, in characters.
const LONGEST: usize = 64;
/// Hexadecimal digits that tell operations of one name apart.
const DIGITS: usize = 8;

/// Source of a name.
pub(super) struct Named<'d> {
    pub(super) id: Option<&'d str>,
    pub(super) method: &'d Method,
    pub(super) path: &'d str,
}

/// The names of the tools of all operations of a document, in their order.
///
/// A name is the `operationId`, else method and path, in the characters of names. Where several operations would have the same, or the
/// name is too long, a hash of method and path follows; only an operation whose `operationId` is the name itself keeps it.
pub(super) fn assign(operations: &[Named<'_>]) -> Vec<String> {
    // Characters beyond the longest name make no difference.
    let clipped = |mut name: String| {
        name.truncate(LONGEST + 1);
        name.shrink_to_fit();
        name
    };
    let wanted: Vec<String> = operations.iter().map(|operation| clipped(plain(operation))).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    let mut exact: HashMap<&str, usize> = HashMap::new();
    for (name, operation) in wanted.iter().zip(operations) {
        *count.entry(name).or_default() += 1;
        *exact.entry(name).or_default() += usize::from(operation.id == Some(name));
    }
    let is_plain = |name: &str, operation: &Named<'_>| {
        let keeps = count[name] == 1 || operation.id == Some(name) && exact[name] == 1;
        keeps && name.len() <= LONGEST
    };
    let names = wanted.iter().zip(operations);
    let mut taken: HashSet<String> = names
        .clone()
        .filter(|(name, operation)| is_plain(name, operation))
        .map(|(name, _)| name.clone())
        .collect();
    names
        .map(|(name, operation)| {
            if is_plain(name, operation) {
                return name.clone();
            }
            // More digits, in case that another operation is called like this one with its hash.
            let hash = hash(operation);
            let mut marked = (DIGITS..=LONGEST - 1).step_by(4).map(|digits| {
                let room = name.floor_char_boundary(LONGEST - digits - 1);
                let kept = name[..room].trim_end_matches(['_', '-', '.']);
                format!("{kept}{}{}", if kept.is_empty() { "" } else { "_" }, &hash[..digits])
            });
            let name = marked.find(|name| !taken.contains(name)).unwrap_or(hash.clone());
            taken.insert(name.clone());
            name
        })
        .collect()
}

fn plain(operation: &Named<'_>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let joined =
        |text: &str| text.split(|c| !fits(c)).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_");
    match operation.id {
        Some(id) if !id.is_empty() && id.chars().all(fits) => id.to_owned(),
        Some(id) if id.contains(|c: char| c.is_ascii_alphanumeric()) => joined(id),
        _ => joined(&format!("{}/{}", operation.method.as_str().to_ascii_lowercase(), operation.path)),
    }
}

fn hash(operation: &Named<'_>) -> String {
    let text = format!("{} {}", operation.method, operation.path);
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(operations: &[(Option<&str>, Method, &str)]) -> Vec<String> {
        let named =
            |(id, method, path): &'static (Option<&str>, Method, &str)| Named { id: *id, method, path };
        let operations: &'static [_] = operations
            .iter()
            .map(|(id, method, path)| {
                (id.map(|id| &*id.to_owned().leak()), method.clone(), &*(*path).to_owned().leak())
            })
            .collect::<Vec<_>>()
            .leak();
        assign(&operations.iter().map(named).collect::<Vec<_>>())
    }

    #[test]
    fn names_come_from_ids_or_from_method_and_path() {
        let all = names(&[
            (Some("repos/list-for-org"), Method::GET, "/orgs/{org}/repos"),
            (Some("Plain.id_1"), Method::GET, "/a"),
            (None, Method::GET, "/users/{id}/posts"),
            (Some(""), Method::POST, "/"),
            (Some("日本"), Method::PUT, "/x"),
        ]);
        assert_eq!(all, ["repos_list-for-org", "Plain.id_1", "get_users_id_posts", "post", "put_x"]);
    }

    #[test]
    fn equal_names_get_a_hash_that_does_not_depend_on_the_order() {
        let a = (Some("a b"), Method::GET, "/1");
        let b = (Some("a/b"), Method::GET, "/2");
        let exact = (Some("a_b"), Method::GET, "/3");
        let all = names(&[a.clone(), b.clone(), exact.clone()]);
        assert_eq!(all[2], "a_b");
        assert!(all[0].starts_with("a_b_") && all[0].len() == 12, "{all:?}");
        assert_ne!(all[0], all[1]);
        let turned = names(&[exact, b, a]);
        assert_eq!(turned.iter().rev().collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
        let twice = names(&[(Some("same"), Method::GET, "/1"), (Some("same"), Method::GET, "/2")]);
        assert!(twice[0] != twice[1] && twice.iter().all(|name| name.starts_with("same_")), "{twice:?}");
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = "x".repeat(70);
        let all =
            names(&[(Some(&long), Method::GET, "/1"), (Some(&(long.clone() + "y")), Method::GET, "/2")]);
        assert_ne!(all[0], all[1]);
        assert!(all.iter().all(|name| name.len() == 64), "{all:?}");
        assert_eq!(names(&[(None, Method::GET, "/{a}"), (None, Method::GET, "/a")]).len(), 2);
    }

    #[test]
    fn a_name_that_looks_like_one_with_a_hash_stays_with_its_operation() {
        let twice = names(&[(Some("s"), Method::GET, "/1"), (Some("s"), Method::GET, "/2")]);
        let all = names(&[
            (Some("s"), Method::GET, "/1"),
            (Some("s"), Method::GET, "/2"),
            (Some(&twice[0]), Method::GET, "/3"),
        ]);
        assert_eq!(all[2], twice[0]);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 3, "{all:?}");
    }
}
