//! The header `Link` (RFC 8288).

/// The target of the link with the relation `next` (RFC 8288 §3).
pub(super) fn next_link(header: &str) -> Option<&str> {
    let mut rest = header;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>')?;
        let target = &rest[start + 1..end];
        let parameters = parts(&rest[end + 1..], ',').next().unwrap_or_default();
        let is_next = parts(parameters, ';').any(|parameter| {
            let Some((name, value)) = parameter.split_once('=') else { return false };
            let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
            name.trim().eq_ignore_ascii_case("rel")
                && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
        });
        if is_next {
            return Some(target);
        }
        rest = &rest[end + 1 + parameters.len()..];
    }
    None
}

/// Parts of a header, which separators in quotes do not divide.
fn parts(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c| {
        is_quoted ^= c == '"';
        c == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_with_the_relation_next_is_found_among_others() {
        let github = r#"<https://api.example/v1/x?page=1,2>; rel="prev", <https://api.example/v1/x?page=3>; rel="next last""#;
        assert_eq!(next_link(github), Some("https://api.example/v1/x?page=3"));
        assert_eq!(next_link(r#"</a>; title="x, <y>; rel=next"; rel=first, </b>; REL=Next"#), Some("/b"));
        for none in ["", "<", "</a>", r#"</a>; rel="nextish""#, r#"</a>; xrel=next"#] {
            assert_eq!(next_link(none), None, "{none}");
        }
    }
}
