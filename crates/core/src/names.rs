//! Public names of tools: `<app>:<tool>`, or a spelling without `:` for APIs that refuse it.

use serde::{Deserialize, Serialize};

/// Spelling of listed tool names. Calls accept both spellings always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolNames {
    /// `crm:users_list`.
    #[default]
    Colon,
    /// `crm_users_list`, for language-model APIs that allow only `[A-Za-z0-9_-]`.
    Underscore,
}

impl ToolNames {
    /// The public spelling of `name`, which is in the colon form.
    pub fn spell(self, name: &str) -> String {
        match self {
            Self::Colon => name.to_owned(),
            Self::Underscore => underscore(name),
        }
    }
}

/// Longest name that is looked at closely, repeated in an error or passed to observers, in bytes. Clients may send names of megabytes.
pub(crate) const LONGEST_NAME: usize = 256;

/// Returns `true` if a URI, or what a URI template makes, has the scheme of the gateway itself: `gatewright://results/…` names results that it
/// keeps, and no app answers for it.
pub(crate) fn is_own_uri(uri: &str) -> bool {
    uri.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("gatewright"))
}

/// The app's id and its own URI, of a URI in the form `<app>:<URI>`. A hierarchical one such as `doc://1` is not of this form, even if its scheme
/// is the id of an app.
pub(crate) fn qualified(uri: &str) -> Option<(&str, &str)> {
    uri.split_once(':').filter(|(_, own)| !own.starts_with('/') && own.contains(':'))
}

/// Longest URI of a resource or template that is looked at, in bytes.
pub(crate) const LONGEST_URI: usize = 8 * 1024;

/// The beginning of a stranger's text: at most [`LONGEST_NAME`] bytes.
pub(crate) fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_NAME)]
}

/// The one of `candidates` that is nearest to a misspelt `name`; none for a name of more than 256 bytes, or when none is near.
pub fn nearest_name<'n>(name: &str, candidates: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    const ENOUGH: f64 = 0.8;
    if name.len() > LONGEST_NAME {
        return None;
    }
    let near = candidates.into_iter().map(|candidate| (likeness(name, candidate), candidate));
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))?;
    (best.0 >= ENOUGH).then_some(best.1)
}

/// The likeness of two names, from 0 to 1. Short ones that differ by one letter, or by two that are swapped, are near.
pub(crate) fn likeness(name: &str, candidate: &str) -> f64 {
    const SHORT: std::ops::RangeInclusive<usize> = 3..=8;
    let likeness = strsim::jaro_winkler(name, candidate);
    let are_short = SHORT.contains(&name.len()) && SHORT.contains(&candidate.len());
    match are_short && strsim::osa_distance(name, candidate) == 1 {
        true => likeness.max(0.8),
        false => likeness,
    }
}

/// The spelling without characters that some APIs refuse.
pub(crate) fn underscore(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

fn is_plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

/// Checks the id of an app: 1-64 of `a-z A-Z 0-9 _ - .`, and not one of the gateway's own.
///
/// # Errors
/// A sentence that says what to change.
pub fn check_app_id(id: &str) -> Result<(), String> {
    if !is_plain(id) {
        return Err(format!("app id `{id}` must be 1 to 64 letters, digits, `_`, `-` or `.`"));
    }
    if id == "codecall" {
        return Err("app id `codecall` is taken by the gateway's own meta-tools; choose another".to_owned());
    }
    Ok(())
}

/// Checks an app's own name for a tool: 1-64 of `a-z A-Z 0-9 _ - .`.
///
/// # Errors
/// A sentence that says what to change.
pub fn check_tool_name(name: &str) -> Result<(), String> {
    if !is_plain(name) {
        return Err(format!(
            "tool name `{}` must be 1 to 64 letters, digits, `_`, `-` or `.`",
            clipped(name)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscore_names_hold_nothing_an_api_refuses() {
        assert_eq!(ToolNames::Underscore.spell("crm:users.list/all"), "crm_users_list_all");
        assert_eq!(ToolNames::Colon.spell("crm:users.list"), "crm:users.list");
    }

    #[test]
    fn a_qualified_uri_is_an_id_and_another_uri() {
        assert_eq!(qualified("good:doc://1"), Some(("good", "doc://1")));
        assert_eq!(qualified("good:urn:7"), Some(("good", "urn:7")));
        for plain in ["doc://1", "doc://host:80/1", "mailto:a", "doc:///a:b", "doc"] {
            assert_eq!(qualified(plain), None, "{plain}");
        }
    }

    #[test]
    fn short_names_with_one_wrong_or_two_swapped_letters_are_near() {
        let apps = ["git", "files", "db", "calendar"];
        for (name, expected) in [
            ("gti", Some("git")),
            ("gut", Some("git")),
            ("filse", Some("files")),
            ("calender", Some("calendar")),
        ] {
            assert_eq!(nearest_name(name, apps), expected, "{name}");
        }
        assert_eq!((nearest_name("xyz", apps), nearest_name("gx", apps)), (None, None));
    }

    #[test]
    fn an_app_may_not_pose_as_the_meta_tools() {
        assert!(check_app_id("crm-2.b").is_ok());
        assert!(
            check_app_id("codecall").is_err() && check_app_id("").is_err() && check_app_id("a:b").is_err()
        );
    }
}
