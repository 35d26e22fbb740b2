//! Tells the words of a request from the values in it: names, numbers, paths and quotations.
//!
//! "Send 'quarterly numbers' to Ada" asks for a way to send, not for quarters.

/// Shape of a word of a query, from the most to the least telling about the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Looks {
    /// An ordinary word.
    Word,
    /// Capitalised within a sentence.
    Name,
    /// A number, a path, an address or quoted.
    Value,
}

/// Reads the words of one clause in order.
#[derive(Debug, Default)]
pub(crate) struct Values {
    started: bool,
    quote: Option<char>,
}

impl Values {
    /// Returns the shape of the next word between spaces.
    pub(crate) fn look(&mut self, chunk: &str) -> Looks {
        let first = !std::mem::replace(&mut self.started, !chunk.ends_with(['.', '?', '!', ':']));
        let opening = chunk.trim_start_matches(['(', '[', '{', ',', '\\']).chars().next();
        let mut quoted = self.quote.is_some();
        if self.quote.is_none()
            && let Some(mark @ ('"' | '\'' | '“' | '‘' | '`' | '«')) = opening
        {
            quoted = true;
            self.quote = Some(match mark {
                '“' => '”',
                '‘' => '’',
                '«' => '»',
                other => other,
            });
        }
        if let Some(mark) = self.quote {
            let rest = chunk.trim_end_matches([',', '.', '?', '!', ')', ']', '}', ';', ':', '\\']);
            let body = rest.strip_suffix(mark);
            if body.is_some_and(|body| !body.is_empty()) {
                self.quote = None;
            }
        }
        if quoted || chunk.contains("://") || chunk.contains('@') || chunk.starts_with(['/', '~']) {
            return Looks::Value;
        }
        if chunk.chars().any(char::is_numeric) {
            return Looks::Value;
        }
        match chunk.chars().find(|c| c.is_alphanumeric()) {
            Some(c) if c.is_uppercase() && !first => Looks::Name,
            _ => Looks::Word,
        }
    }
}
