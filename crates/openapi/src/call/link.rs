//! The header `Link` (RFC 8288).

/// The target of the link with the relation `next` (RFC 8288 §3).
pub(super) fn next_link(header: &str) -> Option<&str> {
    link(header, |relation| relation.eq_ignore_ascii_case("next"))
}

/// Returns `true` if there are links to other pages, which a last page has as well.
pub(super) fn is_of_pages(header: &str) -> bool {
    const OTHERS: [&str; 4] = ["first", "last", "prev", "previous"];
    link(header, |relation| OTHERS.iter().any(|other| relation.eq_ignore_ascii_case(other))).is_some()
}

/// The target of the first link from the page itself with one of the relations.
fn link(header: &str, is_wanted: impl Fn(&str) -> bool) -> Option<&str> {
    let mut rest = header;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>')?;
        let target = &rest[start + 1..end];
        let parameters = parts(&rest[end + 1..], ',').next().unwrap_or_default();
        let of = |wanted: &str| {
            parts(parameters, ';').find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"'))
            })
        };
        let mut relations = of("rel").unwrap_or_default().split_ascii_whitespace();
        // With an anchor it is a link of something else (RFC 8288 §3.2).
        if relations.any(&is_wanted) && of("anchor").is_none() {
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
        assert!(is_of_pages(github) && !is_of_pages(r#"</a>; rel="describedby""#));
        let other = r#"</a>; anchor="/other"; rel=next, </b>; rel=next"#;
        assert_eq!(next_link(other), Some("/b"));
        for none in ["", "<", "</a>", r#"</a>; rel="nextish""#, r#"</a>; xrel=next"#] {
            assert_eq!(next_link(none), None, "{none}");
        }
    }
}
