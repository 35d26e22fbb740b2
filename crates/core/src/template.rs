//! URI templates (RFC 6570), as far as routing a URI needs them.

/// Returns `true` if a URI can come from an RFC 6570 template: literal parts must appear in order, expressions stand for any text.
pub(crate) fn matches_template(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut open = false;
    let mut pattern = template;
    while !pattern.is_empty() {
        let (literal, after) = match pattern.find('{') {
            Some(at) => match pattern[at..].find('}') {
                Some(end) => (&pattern[..at], Some(&pattern[at + end + 1..])),
                None => (pattern, None),
            },
            None => (pattern, None),
        };
        if !literal.is_empty() {
            let last = after.is_none();
            let at = match (open, last) {
                (true, true) => {
                    rest.len().checked_sub(literal.len()).filter(|at| rest[..].ends_with(literal) && *at > 0)
                }
                (true, false) => rest.find(literal),
                (false, _) => rest.starts_with(literal).then_some(0),
            };
            let Some(at) = at else { return false };
            rest = &rest[at + literal.len()..];
            open = false;
        }
        match after {
            Some(after) => {
                open = true;
                pattern = after;
            }
            None => break,
        }
    }
    open || rest.is_empty()
}

/// Returns `true` if the template names the scheme of its URIs, and so does not stand for any URI.
pub(crate) fn names_scheme(template: &str) -> bool {
    template.split('{').next().is_some_and(|literal| literal.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::{matches_template, names_scheme};

    #[test]
    fn a_template_that_stands_for_any_uri_names_no_scheme() {
        assert!(names_scheme("doc://{x}") && names_scheme("doc:{+x}") && names_scheme("doc://1"));
        assert!(!names_scheme("{+x}") && !names_scheme("{scheme}://{x}") && !names_scheme(""));
    }

    #[test]
    fn a_template_matches_what_it_can_expand_to() {
        for (template, uri, fits) in [
            ("crm://users/{id}", "crm://users/7", true),
            ("crm://users/{id}", "crm://accounts/7", false),
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template/123/other", false),
            ("file:///{+path}", "file:///a/b/c.txt", true),
            ("x://{a}-{b}", "x://1-2", true),
            ("x://fixed", "x://fixed", true),
            ("x://fixed", "x://fixed/more", false),
            ("x://{a}/end", "x:///", false),
        ] {
            assert_eq!(matches_template(template, uri), fits, "{template} {uri}");
        }
    }
}
