//! Rewrites text in place: blanks that keep every line and column, insertions that are remembered.

use std::borrow::Cow;

/// One change of the text. Offsets are bytes of the text before the change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// Closes something before whatever starts here; later ones (inner) come first.
    Close(&'static str),
    /// Opens something here; earlier ones (outer) come first.
    Open(Cow<'static, str>),
    /// Spaces instead of the characters from start to end, line ends kept; the first becomes `first`, the last `last`.
    Blank { first: char, last: char },
}

impl Edit {
    pub(super) fn open(at: u32, text: impl Into<Cow<'static, str>>) -> Self {
        Self { start: at, end: at, change: Change::Open(text.into()) }
    }

    pub(super) fn close(at: u32, text: &'static str) -> Self {
        Self { start: at, end: at, change: Change::Close(text) }
    }

    pub(super) fn blank(start: u32, end: u32) -> Self {
        Self { start, end, change: Change::Blank { first: ' ', last: ' ' } }
    }
}

/// Applies `edits`; gives the new text, and offset and length of every insertion in it.
///
/// Blanks inside blanks are left out.
pub(super) fn apply(text: &str, edits: Vec<Edit>) -> (String, Vec<(u32, u32)>) {
    let mut order: Vec<(u32, u8, i64, Edit)> = edits
        .into_iter()
        .enumerate()
        .map(|(nth, edit)| {
            let nth = i64::try_from(nth).unwrap_or(i64::MAX);
            match edit.change {
                Change::Close(_) => (edit.start, 0, -nth, edit),
                Change::Open(_) => (edit.start, 1, nth, edit),
                Change::Blank { .. } => (edit.start, 2, -i64::from(edit.end), edit),
            }
        })
        .collect();
    order.sort_unstable_by_key(|(start, rank, nth, _)| (*start, *rank, *nth));
    let mut out = String::with_capacity(text.len() + order.len() * 14);
    let mut added = Vec::new();
    let mut done = 0;
    for (start, _, _, edit) in order {
        let (start, end) = (start as usize, edit.end as usize);
        if start < done {
            continue;
        }
        out.push_str(&text[done..start]);
        done = start;
        match edit.change {
            Change::Open(piece) => insert(&mut out, &mut added, &piece),
            Change::Close(piece) => insert(&mut out, &mut added, piece),
            Change::Blank { first, last } => {
                blank(&mut out, &text[start..end], first, last);
                done = end;
            }
        }
    }
    out.push_str(&text[done..]);
    (out, added)
}

fn insert(out: &mut String, added: &mut Vec<(u32, u32)>, piece: &str) {
    let at = u32::try_from(out.len()).unwrap_or(u32::MAX);
    added.push((at, u32::try_from(piece.len()).unwrap_or(u32::MAX)));
    out.push_str(piece);
}

fn blank(out: &mut String, text: &str, first: char, last: char) {
    let count = text.chars().count();
    for (nth, c) in text.chars().enumerate() {
        out.push(match c {
            '\n' | '\r' => c,
            _ if nth + 1 == count && last != ' ' => last,
            _ if nth == 0 => first,
            _ => ' ',
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_keep_lines_and_columns_and_insertions_nest() {
        let (out, added) = apply(
            "aé\nbc d",
            vec![
                Edit::blank(1, 5),
                Edit::open(5, "("),
                Edit::open(5, "["),
                Edit::close(7, ")"),
                Edit::close(7, "]"),
            ],
        );
        assert_eq!(out, "a \n ([c ])d");
        assert_eq!(added, vec![(4, 1), (5, 1), (8, 1), (9, 1)]);
    }
}
