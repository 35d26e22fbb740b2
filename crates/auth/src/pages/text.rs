//! Text of other parties on our pages.

/// Removes control and direction characters, and cuts the text after `max` characters.
pub(crate) fn plain(text: &str, max: usize) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    let clean: String = text.chars().filter(|c| !hidden(*c)).collect();
    let clean = clean.trim();
    match clean.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &clean[..at]),
        None => clean.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b13_text_from_strangers_is_cleaned_and_cut() {
        assert_eq!(plain("a\u{202e}b\u{0}c\n", 80), "abc");
        assert_eq!(plain(&"x".repeat(10_000), 80).chars().count(), 81);
    }
}
