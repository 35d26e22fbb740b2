//! Summaries of texts that repeat, for reports.

use crate::base::text::shorten;

/// Violations and calls of one kind.
const LINES: usize = 10;

/// Texts, shortened: repeated ones once with their number, and at most ten.
pub(super) fn summarized(texts: Vec<String>) -> Vec<String> {
    let mut counted: Vec<(String, usize)> = Vec::new();
    let mut more = 0;
    for text in texts {
        let text = shorten(&text, 600);
        match counted.iter().position(|(known, _)| *known == text) {
            Some(at) => counted[at].1 += 1,
            None if counted.len() < LINES => counted.push((text, 1)),
            None => more += 1,
        }
    }
    let mut lines: Vec<String> = counted
        .into_iter()
        .map(|(text, count)| if count > 1 { format!("{text} ({count} times)") } else { text })
        .collect();
    if more > 0 {
        lines.push(format!("… and {more} more"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_texts_are_counted_and_further_ones_left_out() {
        let mut texts = vec!["a".to_owned(); 500];
        texts.extend((0..30).map(|n| format!("b{n}")));
        let lines = summarized(texts);
        assert_eq!((lines.len(), lines[0].as_str()), (LINES + 1, "a (500 times)"));
        assert_eq!(lines[LINES], "… and 21 more");
    }
}
