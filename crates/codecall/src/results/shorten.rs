//! Shortening a big value by its structure: arrays lose their last items and texts their ends, and what was cut is listed.

use std::io;

use serde::Serialize;
use serde_json::{Map, Value};

/// Places that are listed, at most.
const MOST_CUTS: usize = 20;
/// Longest path that is listed, in bytes.
const LONGEST_PATH: usize = 200;
/// Bytes below which a part is not worth a share: it is left out, or cut to a few characters.
const LEAST: usize = 64;
/// Items of an array of which something is shown even if none of them fits.
const FIRST_ITEMS: usize = 3;
/// Levels that are shortened. What is deeper is kept or left out as a whole.
const DEEPEST: usize = 64;

/// A place of which a part was cut.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cut {
    /// A JSON Pointer.
    path: String,
    /// Number that is left.
    kept: usize,
    /// Number before.
    of: usize,
    /// Unit of the numbers: items, members or characters.
    unit: &'static str,
}

/// Places of cuts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Cuts {
    /// The first places, each before those within it.
    pub(crate) listed: Vec<Cut>,
    /// Number of places that are not listed.
    pub(crate) more: usize,
}

/// Shortens `value` to at most `budget` bytes of JSON, and lists the places of cuts, at most 20.
pub(crate) fn shorten(value: &mut Value, budget: usize) -> Cuts {
    let mut shortener = Shortener::default();
    shortener.fit(value, budget, 0);
    shortener.cuts
}

#[derive(Default)]
struct Shortener {
    path: Vec<String>,
    cuts: Cuts,
}

impl Shortener {
    fn fit(&mut self, value: &mut Value, budget: usize, depth: usize) {
        if json_len(value, budget) <= budget {
            return;
        }
        match value {
            Value::String(text) if depth < DEEPEST => self.text(text, budget),
            Value::Array(items) if depth < DEEPEST => self.array(items, budget, depth),
            Value::Object(members) if depth < DEEPEST => self.object(members, budget, depth),
            // Too deep, or longer than its budget although it is a scalar: the budget is tiny.
            whole => {
                *whole = Value::Null;
                self.note(self.cuts.listed.len(), 0, 1, "values");
            }
        }
    }

    fn text(&mut self, text: &mut String, budget: usize) {
        // Room for the quotes and the mark; a character may take six bytes as JSON.
        let mut left = budget.saturating_sub(2 + '…'.len_utf8());
        let end = text.char_indices().find(|(_, character)| {
            let bytes = escaped(*character);
            let is_over = bytes > left;
            left = left.saturating_sub(bytes);
            is_over
        });
        let end = end.map_or(text.len(), |(at, _)| at);
        let (kept, of) = (text[..end].chars().count(), text.chars().count());
        text.truncate(end);
        text.push('…');
        self.note(self.cuts.listed.len(), kept, of, "characters");
    }

    fn array(&mut self, items: &mut Vec<Value>, budget: usize, depth: usize) {
        let (at, of) = (self.cuts.listed.len(), items.len());
        let mut left = budget.saturating_sub(2);
        let whole = items.iter().take_while(|item| match left.checked_sub(json_len(item, left) + 1) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        let whole = whole.count();
        if whole >= FIRST_ITEMS.min(of) {
            items.truncate(whole);
        } else {
            items.truncate(FIRST_ITEMS.min(of));
            let parts = items.iter_mut().enumerate().map(|(at, item)| (at.to_string(), item)).collect();
            let kept = self.share(parts, budget.saturating_sub(2), 1, depth);
            items.truncate(kept);
        }
        if items.len() < of {
            self.note(at, items.len(), of, "items");
        }
    }

    fn object(&mut self, members: &mut Map<String, Value>, budget: usize, depth: usize) {
        let (at, of) = (self.cuts.listed.len(), members.len());
        let parts = members.iter_mut().map(|(name, member)| (name.clone(), member)).collect();
        let kept = self.share(parts, budget.saturating_sub(2), 0, depth);
        if kept < of {
            *members = std::mem::take(members).into_iter().take(kept).collect();
            self.note(at, kept, of, "members");
        }
    }

    /// Gives each part what it needs if that is less than an equal share, and shortens the others to an equal share of the rest. Returns
    /// the number of parts, from the first, that there is room for. `comma` says how many bytes go with a part besides its name.
    fn share(
        &mut self,
        mut parts: Vec<(String, &mut Value)>,
        budget: usize,
        comma: usize,
        depth: usize,
    ) -> usize {
        let overhead = |name: &str| if comma == 1 { 1 } else { name_len(name) + 2 };
        let mut left = budget;
        let mut needs = Vec::with_capacity(parts.len());
        for (name, part) in &parts {
            let need = json_len(part, budget);
            let least = overhead(name) + need.min(LEAST);
            if least > left {
                break;
            }
            left -= least;
            needs.push(need);
        }
        parts.truncate(needs.len());
        // `left` is what goes beyond the least of each.
        let mut more: Vec<(usize, usize)> = needs
            .iter()
            .enumerate()
            .filter(|(_, need)| **need > LEAST)
            .map(|(at, need)| (*need, at))
            .collect();
        more.sort_unstable();
        let mut shares = vec![LEAST; parts.len()];
        let count = more.len();
        for (done, (need, at)) in more.into_iter().enumerate() {
            let extra = (left / (count - done)).min(need - LEAST);
            shares[at] = LEAST + extra;
            left -= extra;
        }
        let kept = parts.len();
        for (at, (name, part)) in parts.into_iter().enumerate() {
            self.path.push(name);
            self.fit(part, shares[at], depth + 1);
            self.path.pop();
        }
        kept
    }

    /// Lists the current place as number `at`. The last of too many is counted instead.
    fn note(&mut self, at: usize, kept: usize, of: usize, unit: &'static str) {
        if self.cuts.listed.len() == MOST_CUTS {
            self.cuts.more += 1;
            if at == MOST_CUTS {
                return;
            }
            self.cuts.listed.pop();
        }
        let mut path: String =
            self.path.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect();
        if path.len() > LONGEST_PATH {
            // Places that begin alike end in other keys.
            let (head, tail) = (LONGEST_PATH / 2, path.len() - LONGEST_PATH / 2);
            path.replace_range(path.floor_char_boundary(head)..path.ceil_char_boundary(tail), "…");
        }
        self.cuts.listed.insert(at, Cut { path, kept, of, unit });
    }
}

/// Bytes of a character within a JSON text.
fn escaped(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        control if control < ' ' => 6,
        other => other.len_utf8(),
    }
}

fn name_len(name: &str) -> usize {
    2 + name.chars().map(escaped).sum::<usize>()
}

/// Bytes of a value as JSON; some number above `most` when it has more, without looking at all of it.
pub(crate) fn json_len(value: &impl Serialize, most: usize) -> usize {
    struct Count {
        bytes: usize,
        most: usize,
    }
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes += bytes.len();
            if self.bytes > self.most { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count { bytes: 0, most };
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.bytes,
        Err(_) => count.bytes.max(most.saturating_add(1)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shortened(mut value: Value, budget: usize) -> (Value, Vec<Cut>) {
        let cuts = shorten(&mut value, budget);
        let len = value.to_string().len();
        assert!(len <= budget, "{len} of {budget}");
        assert!(cuts.more == 0 || cuts.listed.len() == MOST_CUTS);
        (value, cuts.listed)
    }

    fn cut(path: &str, kept: usize, of: usize, unit: &'static str) -> Cut {
        Cut { path: path.to_owned(), kept, of, unit }
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let value = json!({"a": [1, 2, 3]});
        assert_eq!(shortened(value.clone(), 15), (value, vec![]));
    }

    #[test]
    fn a_list_keeps_its_first_items_whole_and_what_stands_beside_it() {
        let items: Vec<Value> = (0..1_000).map(|n| json!({"id": n, "name": "somebody"})).collect();
        let (short, cuts) = shortened(json!({"items": items, "total": 1_000, "next": "abc"}), 2_000);
        let kept = short["items"].as_array().unwrap();
        assert!(kept.len() > 50, "{}", kept.len());
        assert_eq!(kept[..], items[..kept.len()]);
        assert_eq!((&short["total"], &short["next"]), (&json!(1_000), &json!("abc")));
        assert_eq!(cuts, [cut("/items", kept.len(), 1_000, "items")]);
    }

    #[test]
    fn long_texts_share_the_room_and_are_counted_in_characters() {
        let (short, cuts) =
            shortened(json!({"a": "ä".repeat(10_000), "b": "\u{1}".repeat(10_000), "c": "c"}), 1_000);
        let chars = |name: &str| short[name].as_str().unwrap().chars().count() - 1;
        assert!(chars("a") > 200 && chars("b") > 60, "{short}");
        assert_eq!(short["c"], "c");
        assert_eq!(
            cuts,
            [cut("/a", chars("a"), 10_000, "characters"), cut("/b", chars("b"), 10_000, "characters")]
        );
    }

    #[test]
    fn a_few_huge_items_are_shortened_themselves() {
        let page = |n: usize| json!({"n": n, "rows": vec![n; 10_000]});
        let (short, cuts) = shortened(json!([page(1), page(2)]), 1_000);
        assert_eq!(short.as_array().unwrap().len(), 2);
        assert_eq!(short[1]["n"], 2);
        assert_eq!(cuts.iter().map(|cut| cut.path.as_str()).collect::<Vec<_>>(), ["/0/rows", "/1/rows"]);
    }

    #[test]
    fn an_object_with_too_many_members_keeps_the_first() {
        let many: Map<String, Value> = (0..1_000).map(|n| (format!("key/{n}"), json!(n))).collect();
        let (short, cuts) = shortened(many.into(), 500);
        let kept = short.as_object().unwrap().len();
        assert!(kept > 10);
        assert_eq!(cuts, [cut("", kept, 1_000, "members")]);
    }

    #[test]
    fn cuts_beyond_those_that_are_listed_are_counted() {
        let lists: Map<String, Value> = (10..40).map(|n| (format!("team{n}"), json!(vec![n; 400]))).collect();
        let texts: Map<String, Value> =
            (10..50).map(|n| (format!("text{n}"), "x".repeat(400).into())).collect();
        for (value, more) in [(lists, 10), (texts, 20)] {
            let mut short = Value::from(value.clone());
            let cuts = shorten(&mut short, 10_000);
            assert_eq!((cuts.listed.len(), cuts.more), (MOST_CUTS, more));
            assert!(value.keys().all(|name| short[name] != value[name]));
        }
    }

    #[test]
    fn a_cut_is_listed_before_those_within_it() {
        let lists: Map<String, Value> = (10..40).map(|n| (format!("team{n}"), json!(vec![n; 400]))).collect();
        let mut value = json!(vec![lists; 100]);
        let cuts = shorten(&mut value, 16_000);
        assert_eq!(cuts.listed[0], cut("", 3, 100, "items"));
        assert_eq!((cuts.listed[19].path.as_str(), cuts.more), ("/0/team28", 71));
    }

    #[test]
    fn long_places_that_begin_alike_are_told_apart() {
        let texts: Map<String, Value> =
            (0..5).map(|n| (format!("{}{n}", "ö".repeat(150)), "x".repeat(2_000).into())).collect();
        let (_, cuts) = shortened(json!({"ä".repeat(90): texts}), 5_000);
        let paths: std::collections::HashSet<&str> = cuts.iter().map(|cut| cut.path.as_str()).collect();
        assert_eq!((paths.len(), cuts.len()), (5, 5), "{cuts:?}");
        assert!(paths.iter().all(|path| path.starts_with("/ää") && path.contains('…')));
    }

    #[test]
    fn hostile_values_fit_every_budget_and_the_list_of_cuts_stays_short() {
        let deep = (0..100).fold(json!("x".repeat(5_000)), |inner, _| json!({ "~/\u{1}": [inner] }));
        let texts: Vec<Value> = (0..500).map(|_| json!("\u{1}".repeat(500))).collect();
        let named: Map<String, Value> =
            (0..50).map(|n| (format!("{n}{}", "\u{1}".repeat(300)), json!([]))).collect();
        for value in [
            deep,
            json!({"a": {"b": texts}}),
            named.into(),
            json!("x".repeat(100_000)),
            json!([[[[["x".repeat(9_000)]]]]]),
        ] {
            for budget in [100, 1_000, 4_000] {
                let (_, cuts) = shortened(value.clone(), budget);
                assert!(!cuts.is_empty() && cuts.len() <= MOST_CUTS);
                assert!(cuts.iter().all(|cut| cut.path.len() <= LONGEST_PATH + 3));
            }
        }
    }
}
