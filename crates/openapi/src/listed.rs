//! Lists of names in messages.

/// Most bytes of a list.
const MOST: usize = 300;

/// The first of `names`, as far as there is room for them in a message.
pub(crate) fn listed(names: impl IntoIterator<Item = impl AsRef<str>>, separator: &str) -> String {
    let mut list = String::new();
    for (at, name) in names.into_iter().enumerate() {
        if at > 0 {
            list.push_str(separator);
        }
        list.push_str(name.as_ref());
        if list.len() > MOST {
            list.truncate(list.floor_char_boundary(MOST));
            list.push('…');
            break;
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn lists_of_names_are_short() {
        assert_eq!(listed(["a", "b"], ", "), "a, b");
        assert_eq!(listed(["x".repeat(4_000)], ", ").len(), 303);
        assert!(listed((0..10_000).map(|at| at.to_string()), ", ").ends_with('…'));
    }
}
