//! URIs that a resource template names for the values of the variable that is completed.

use std::{borrow::Cow, collections::HashMap};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters that `{name}` encodes: all but the unreserved ones (RFC 6570 §3.2.2).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A template in which all variables but one are known.
pub(super) struct Expansion {
    before: String,
    after: String,
    /// `{+name}`, which encodes less (RFC 6570 §3.2.3).
    is_reserved: bool,
    /// `false` where the URI cannot be told: another variable is open, or an expression is not `{name}` or `{+name}`.
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
            let (name, is_reserved) =
                expression.strip_prefix('+').map_or((expression, false), |name| (name, true));
            if name == variable && open.is_none() {
                open = Some((std::mem::take(&mut text), is_reserved));
            } else if let Some(value) = others.and_then(|others| others.get(name)) {
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
        let uri = || format!("{}{}{}", self.before, encoded(value, self.is_reserved), self.after);
        self.is_known.then(uri)
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
}
