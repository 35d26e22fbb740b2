//! Splits a request into its parts: "create a ticket and notify the owner" asks for two tools.

/// Most parts of a query that are looked at one by one; what follows belongs to the last.
pub(crate) const MAX_CLAUSES: usize = 12;

/// Verbs that begin a request of their own after "and", "then" or a comma.
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "add", "analyze", "append", "apply", "archive", "arrange", "assign", "attach", "book", "browse", "build", "buy",
    "calculate", "call", "cancel", "capture", "change", "check", "clear", "click", "clone", "close", "commit",
    "compare", "compile", "compose", "compute", "configure", "confirm", "connect", "convert", "copy", "count",
    "create", "delete", "deploy", "describe", "design", "determine", "develop", "disable", "display", "download",
    "draft", "draw", "edit", "email", "enable", "enter", "establish", "estimate", "evaluate", "examine", "execute",
    "export", "extract", "fetch", "fill", "filter", "find", "fork", "format", "generate", "get", "give", "identify",
    "import", "initiate", "insert", "inspect", "install", "invite", "join", "launch", "let", "list", "load", "locate",
    "lock", "log", "look", "make", "manage", "mark", "measure", "merge", "message", "monitor", "move", "notify",
    "obtain", "open", "order", "organize", "pause", "perform", "plan", "play", "plot", "post", "predict", "prepare",
    "print", "process", "provide", "publish", "pull", "purchase", "push", "query", "read", "recommend", "record",
    "register", "remind", "remove", "rename", "replace", "reply", "report", "request", "reserve", "reset", "resize",
    "restart", "retrieve", "review", "rotate", "run", "save", "scan", "schedule", "search", "see", "select", "send",
    "set", "share", "show", "simulate", "sort", "start", "stop", "submit", "suggest", "summarize", "tell", "test",
    "track", "transfer", "translate", "turn", "update", "upload", "use", "validate", "verify", "view", "write",
];

fn is_verb(word: &str) -> bool {
    VERBS
        .binary_search_by(|verb| verb.bytes().cmp(word.bytes().map(|byte| byte.to_ascii_lowercase())))
        .is_ok()
}

/// The clauses of a text, in order. Together they are the whole text.
///
/// A clause ends with a sentence, before the next number of a list ("1.", "2)"), and before "and", "then" or after a comma or at
/// the end of a line where a verb follows.
#[must_use]
pub fn clauses(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut words = chunks(text).peekable();
    let (mut pause, mut numbers) = (false, 0);
    let mut is_number = |word: &str| {
        let is_next =
            word.strip_suffix(['.', ')']).and_then(|number| number.parse().ok()) == Some(numbers + 1);
        numbers += u32::from(is_next);
        is_next
    };
    let mut numbered = words.peek().is_some_and(|(_, word)| is_number(word));
    while let Some((at, word)) = words.next() {
        let sentence = !numbered && word.ends_with(['.', '?', '!', ';', '。', '？', '！', '；']);
        let link =
            matches!(bare(word).to_ascii_lowercase().as_str(), "and" | "then" | "also" | "after" | "finally");
        let Some((next_at, next)) = words.peek() else { break };
        pause = sentence
            || word.ends_with([',', ':'])
            || link
            || text[at..*next_at].contains('\n')
            || (pause && bare(word).eq_ignore_ascii_case("please"));
        let follows_number = std::mem::replace(&mut numbered, is_number(next));
        let ends = sentence || numbered || (pause && is_verb(bare(next)));
        if ends && !follows_number && starts.len() < MAX_CLAUSES {
            starts.push(*next_at);
        }
    }
    let mut ends = starts[1..].to_vec();
    ends.push(text.len());
    starts.into_iter().zip(ends).map(|(start, end)| &text[start..end]).collect()
}

/// Words between spaces, and where each starts.
pub(crate) fn chunks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_whitespace().map(|word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbs_are_sorted_as_their_lookup_needs() {
        assert!(VERBS.is_sorted());
    }

    #[test]
    fn requests_joined_by_and_then_or_a_full_stop_are_told_apart() {
        assert_eq!(
            clauses("create a ticket and notify the owner"),
            ["create a ticket and ", "notify the owner"]
        );
        assert_eq!(
            clauses("Get the file. After that, please send it, then delete it"),
            ["Get the file. ", "After that, please ", "send it, then ", "delete it"]
        );
        assert_eq!(clauses("count the lines; commit them"), ["count the lines; ", "commit them"]);
        assert_eq!(clauses("bread and butter"), ["bread and butter"]);
        assert_eq!(clauses(""), [""]);
    }

    #[test]
    fn the_items_of_a_list_are_parts_with_their_numbers() {
        assert_eq!(
            clauses("1. list issues 2. write rows 3) make a chart"),
            ["1. list issues ", "2. write rows ", "3) make a chart"]
        );
        assert_eq!(clauses("Do this: 1) get it. 2) send it"), ["Do this: ", "1) get it. ", "2) send it"]);
        assert_eq!(
            clauses("list issues\nwrite rows\nof a sheet"),
            ["list issues\n", "write rows\nof a sheet"]
        );
        assert_eq!(clauses("upgrade to version 3. Test it"), ["upgrade to version 3. ", "Test it"]);
        assert_eq!(clauses("top 10. of 12)"), ["top 10. ", "of 12)"]);
    }
}
