//! Selectors of operations: `GET *`, `POST /refunds`, `tag:billing`, or an `operationId`.

use std::{fmt, str::FromStr};

use http::Method;

/// Longest selector, in bytes.
const LONGEST: usize = 1_000;

/// A choice of operations.
///
/// * `GET /users/*`: a method, or `*`, and a path as the document has it. `*` stands for any characters, `/` included.
/// * `/users`: a path, with any method.
/// * `tag:billing`: a tag.
/// * `listUsers`, `repos/*`: an `operationId`, or the name of the tool.
///
/// All but the method are compared with letter case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    text: Box<str>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// None stands for any method.
    Path(Option<Method>, Box<str>),
    Tag(Box<str>),
    Id(Box<str>),
}

/// Property of an operation that a selector compares.
pub(super) struct Selected<'d> {
    pub(super) method: &'d Method,
    pub(super) path: &'d str,
    pub(super) id: Option<&'d str>,
    pub(super) tool: &'d str,
    pub(super) tags: &'d [&'d str],
}

impl Selector {
    /// Returns `true` for an operation that is chosen.
    pub(super) fn matches(&self, operation: &Selected<'_>) -> bool {
        match &self.kind {
            Kind::Path(method, path) => {
                method.as_ref().is_none_or(|method| method == operation.method)
                    && is_like(path, operation.path)
            }
            Kind::Tag(tag) => operation.tags.iter().any(|one| is_like(tag, one)),
            Kind::Id(id) => operation.id.is_some_and(|one| is_like(id, one)) || is_like(id, operation.tool),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST {
            return Err(format!("a selector has 1 to {LONGEST} bytes"));
        }
        let kind = match text.split_once(char::is_whitespace) {
            _ if text.starts_with("tag:") => match text["tag:".len()..].trim() {
                "" => return Err("`tag:` needs the name of a tag".to_owned()),
                tag => Kind::Tag(tag.into()),
            },
            Some((method, path)) => {
                let path = path.trim_start();
                if !path.starts_with(['/', '*']) {
                    return Err(format!("`{path}` is no path: it begins with `/`, or is `*`"));
                }
                let method = match method {
                    "*" => None,
                    method => Some(
                        Method::from_bytes(method.to_ascii_uppercase().as_bytes())
                            .map_err(|_| format!("`{method}` is no HTTP method"))?,
                    ),
                };
                Kind::Path(method, path.into())
            }
            None if text.starts_with('/') || text == "*" => Kind::Path(None, text.into()),
            None => Kind::Id(text.into()),
        };
        Ok(Self { text: text.into(), kind })
    }
}

/// Returns `true` if `text` is like `pattern`, whose `*` stand for any characters. Takes time in proportion to both lengths together for one
/// `*`, and to their product at worst.
fn is_like(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str) -> bool {
        selector.parse::<Selector>().unwrap().matches(&Selected {
            method: &Method::GET,
            path: "/users/{id}/posts",
            id: Some("users/list-posts"),
            tool: "users_list-posts",
            tags: &["users", "Blog posts"],
        })
    }

    #[test]
    fn operations_are_chosen_by_method_path_tag_and_id() {
        for selector in [
            "GET *",
            "get /users/{id}/posts",
            "* /users/*",
            "/users/{id}/posts",
            "GET /users/*/posts",
            "*",
            "tag:users",
            "tag:Blog posts",
            "tag: users",
            "users/list-posts",
            "users_list-posts",
            "users/*",
        ] {
            assert!(matches(selector), "{selector}");
        }
        for selector in
            ["POST *", "GET /users", "tag:Users", "tag:posts", "list-posts", "GET /*/x", "users/list"]
        {
            assert!(!matches(selector), "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        for text in ["", "  ", "tag:", "GET users", "G@T /x"] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
        assert_eq!(" GET  /x ".parse::<Selector>().unwrap().to_string(), "GET  /x");
    }
}
