//! Words to the pieces of a WordPiece vocabulary: the longest known piece first.

/// Calls `each` with the number of every piece of a word, in order, as `find` knows them: it is asked for a piece and
/// if that continues a word. Returns false if some part of the word is unknown; `each` may have been called before.
pub fn pieces(
    word: &str,
    mut find: impl FnMut(&str, bool) -> Option<u32>,
    mut each: impl FnMut(u32),
) -> bool {
    let mut rest = word;
    while !rest.is_empty() {
        let continues = rest.len() < word.len();
        let longest = std::iter::once(rest.len()).chain(rest.char_indices().rev().map(|(end, _)| end));
        let found = longest
            .take_while(|end| *end > 0)
            .find_map(|end| find(&rest[..end], continues).map(|number| (end, number)));
        let Some((end, number)) = found else { return false };
        each(number);
        rest = &rest[end..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_cut_into_the_longest_known_pieces() {
        let find = |piece: &str, continues: bool| match (piece, continues) {
            ("un", false) => Some(1),
            ("aff" | "é", true) => Some(2),
            ("able", true) => Some(3),
            _ => None,
        };
        let cut = |word: &str| {
            let mut out = Vec::new();
            pieces(word, find, |number| out.push(number)).then_some(out)
        };
        assert_eq!(cut("unaffable"), Some(vec![1, 2, 3]));
        assert_eq!(cut("uné"), Some(vec![1, 2]));
        assert_eq!(cut(""), Some(vec![]));
        assert_eq!(cut("able"), None, "it only continues words");
    }
}
