//! The sentences with which the descriptions of an app's tools begin alike, such as "This tool belongs to the car. It ".

/// Bytes of a description that are compared.
const LOOKED_AT: usize = 1_000;
/// Tools from which on equal beginnings are no chance.
const ENOUGH: usize = 3;
/// Shortest beginning that is worth cutting, in bytes.
const SHORTEST: usize = 20;

/// The longest beginning, up to the end of a sentence or a colon, that two thirds of `descriptions` share; empty if there is none.
/// Takes time in proportion to their number.
pub(super) fn common_beginning<'d>(descriptions: impl Iterator<Item = &'d str>) -> &'d str {
    let clipped = descriptions.map(|text| &text[..text.floor_char_boundary(LOOKED_AT)]);
    let mut texts: Vec<&str> = clipped.filter(|text| !text.is_empty()).collect();
    if texts.len() < ENOUGH {
        return "";
    }
    // What more than half of them share is in the middle one.
    let middle = texts.len() / 2;
    let (_, middle, _) = texts.select_nth_unstable(middle);
    let middle = *middle;
    let mut lengths: Vec<usize> = texts.iter().map(|text| shared(text, middle)).collect();
    let sharing = lengths.len() - lengths.len() / 3;
    let (_, length, _) = lengths.select_nth_unstable_by(sharing - 1, |a, b| b.cmp(a));
    let common = &middle[..middle.floor_char_boundary(*length)];
    let ends = [". ", ".\n", ": ", ":\n", "\n"].iter().filter_map(|end| Some(common.rfind(end)? + end.len()));
    let end = ends.max().unwrap_or(0);
    if end < SHORTEST { "" } else { &common[..end] }
}

/// Bytes of `text` after `beginning`; `None` if it begins otherwise, or says nothing after it.
pub(super) fn beginning_of(text: &str, beginning: &str) -> Option<usize> {
    let rest = text.strip_prefix(beginning)?;
    (!beginning.is_empty() && !rest.trim().is_empty()).then_some(beginning.len())
}

fn shared(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> String {
        common_beginning(texts.iter().copied()).to_owned()
    }

    #[test]
    fn sentences_that_two_thirds_of_the_tools_begin_with_are_common() {
        let lead = "This tool belongs to the car. Tool description: ";
        let [start, stop] = ["Starts it.", "Stops it. Slowly."].map(|own| format!("{lead}{own}"));
        assert_eq!(of(&[&start, &stop, &start]), lead);
        assert_eq!(of(&[&start, &stop, "Anew.", &stop]), lead);
        assert_eq!(of(&[&start, "Anew.", "", "Other."]), "");
        assert_eq!(of(&[&start, &stop]), "", "two may do so by chance");
    }

    #[test]
    fn words_that_are_no_whole_sentence_stay() {
        let gets = ["Get the current user", "Get the current time", "Get the current day"];
        assert_eq!(of(&gets), "");
        assert_eq!(of(&["Beta. One thing", "Beta. Two things", "Beta. Three"]), "", "too short to matter");
        assert_eq!(
            of(&["Größen aller Dinge. É", "Größen aller Dinge. È", "Größen aller Dinge. Ê"]),
            "Größen aller Dinge. "
        );
    }

    #[test]
    fn a_description_that_is_nothing_else_is_kept() {
        assert_eq!(beginning_of("One for all. Two", "One for all. "), Some(13));
        for whole in ["One for all. ", "Other", ""] {
            assert_eq!(beginning_of(whole, "One for all. "), None);
        }
        assert_eq!(beginning_of("text", ""), None);
    }
}
