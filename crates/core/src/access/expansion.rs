//! URIs that a resource template names for the values of the variable that is completed.

use std::{borrow::Cow, collections::HashMap};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::names::LONGEST_URI;

/// Characters that `{name}` encodes: all but the unreserved ones (RFC 6570 §3.2.2).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A template in which all variables but one are known.
pub(super) struct Expansion {
    before: String,
    after: String,
    /// `{+name}`, which encodes less (RFC 6570 §3.2.3).
    is_reserved: bool,
    /// `false` where the URI cannot be told: another variable is open, an expression is not `{name}` or `{+name}`, or it is longer than a URI
    /// may be.
    is_known: bool,
}

impl Expansion {
    /// The expansions of `template` by values of `variable`, with the `others` that are known.
    pub(super) fn of(template: &str, variable: &str, others: Option<&HashMap<String, String>>) -> Self {
        let (mut open, mut text, mut rest, mut is_known) = (None, String::new(), template, true);
        while let Some((plain, (expression, after))) =
            rest.split_once('{').and_then(|(plain, rest)| Some((plain, rest.split_once('}')?)))
        {
            text.push_str(plain);
            rest = after;
            // Callers choose the template, and a value for each of its variables: together they may be far longer than both.
            if text.len() > LONGEST_URI {
                is_known = false;
                break;
            }
            let (name, is_reserved) =
                expression.strip_prefix('+').map_or((expression, false), |name| (name, true));
            if name == variable && open.is_none() {
                open = Some((std::mem::take(&mut text), is_reserved));
            } else if let Some(value) = others.and_then(|others| others.get(name))
                && value.len() <= LONGEST_URI
            {
                text.push_str(&encoded(value, is_reserved));
            } else {
                is_known = false;
            }
        }
        text.push_str(rest);
        match open {
            Some((before, is_reserved)) => Self { before, after: text, is_reserved, is_known },
            None => Self { before: text, after: String::new(), is_reserved: false, is_known: false },
        }
    }

    /// The URI for `value`; `None` where it cannot be told.
    pub(super) fn with(&self, value: &str) -> Option<String> {
        if !self.is_known || self.before.len() + value.len() + self.after.len() > LONGEST_URI {
            return None;
        }
        let uri = format!("{}{}{}", self.before, encoded(value, self.is_reserved), self.after);
        (uri.len() <= LONGEST_URI).then_some(uri)
    }
}

fn encoded(value: &str, is_reserved: bool) -> Cow<'_, str> {
    if is_reserved { Cow::Borrowed(value) } else { utf8_percent_encode(value, ENCODED).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uri_for_a_value_is_told_where_the_template_and_the_other_variables_are_plain() {
        let others = HashMap::from([("shelf".to_owned(), "a b".to_owned())]);
        for (template, expected) in [
            ("doc://{id}", Some("doc://x%2Fy")),
            ("doc://{+id}/end", Some("doc://x/y/end")),
            ("doc://{shelf}/{id}", Some("doc://a%20b/x%2Fy")),
            ("doc://{other}/{id}", None),
            ("doc://{?id}", None),
            ("doc://{id*}", None),
            ("doc://{/id}", None),
            ("doc://{shelf,id}", None),
            ("doc://{id", None),
            ("doc://all", None),
        ] {
            let uri = Expansion::of(template, "id", Some(&others)).with("x/y");
            assert_eq!(uri.as_deref(), expected, "{template}");
        }
    }

    #[test]
    fn a_template_that_repeats_a_long_value_is_not_expanded_beyond_the_length_of_a_uri() {
        let long = "x".repeat(3 << 20);
        for (value, times) in [(long.as_str(), 1), (&long, 2_000), (&long[..1_000], 2_000), ("é", 2_000)] {
            let others = HashMap::from([("v".to_owned(), value.to_owned())]);
            let expansion =
                Expansion::of(&format!("doc://{}{{id}}", "{v}".repeat(times)), "id", Some(&others));
            assert!(expansion.before.len() + expansion.after.len() <= 5 * LONGEST_URI, "{times} times");
            assert_eq!(expansion.with("x"), None, "{times} times {} bytes", value.len());
        }
        let short = Expansion::of("doc://{id}", "id", None);
        assert_eq!((short.with(&long), short.with(&"é".repeat(2_000))), (None, None));
        assert!(short.with(&"x".repeat(LONGEST_URI - 6)).is_some());
    }
}
