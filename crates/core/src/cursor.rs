//! Opaque cursors of the paged lists.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::{ErrorData, model::PaginatedRequestParams};

/// Splits `items`, which are in a fixed order, into pages that continue after a key.
///
/// A cursor names the last key of its page, so a list that changes between two pages loses and repeats nothing that
/// stayed.
///
/// # Errors
/// Invalid params (-32602) for a cursor that this list did not give out.
pub(crate) fn page<'a, T>(
    list: &str,
    items: &'a [T],
    key: impl Fn(&T) -> &str,
    request: Option<&PaginatedRequestParams>,
    size: usize,
) -> Result<(&'a [T], Option<String>), ErrorData> {
    let after = after(list, request)?;
    let start = after.map_or(0, |after| items.partition_point(|item| key(item) <= after.as_str()));
    let end = items.len().min(start + size);
    let next = (end < items.len()).then(|| encode(list, key(&items[end - 1])));
    Ok((&items[start..end], next))
}

/// Returns the key that a page of `list` continues after; `None` for the first page.
///
/// # Errors
/// Invalid params (-32602) for a cursor that this list did not give out.
pub(crate) fn after(
    list: &str,
    request: Option<&PaginatedRequestParams>,
) -> Result<Option<String>, ErrorData> {
    let cursor = request.and_then(|request| request.cursor.as_deref());
    let known = cursor.map(|cursor| decode(list, cursor).ok_or(cursor)).transpose();
    known.map_err(|_| {
        ErrorData::invalid_params(format!("unknown cursor for {list}; start again without a cursor"), None)
    })
}

/// The cursor of `list` for what follows `key`.
pub fn encode(list: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}\n{key}"))
}

/// The key in a cursor; `None` when it is none of `list`.
pub fn decode(list: &str, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    text.strip_prefix(list)?.strip_prefix('\n').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(items: &[String], size: usize) -> Vec<String> {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let (part, next) = page("tools", items, |s| s, Some(&request), size).unwrap();
            seen.extend_from_slice(part);
            if next.is_none() {
                return seen;
            }
            cursor = next;
        }
    }

    #[test]
    fn pages_together_are_the_list() {
        let items: Vec<String> = (0..1_001).map(|n| format!("{n:05}")).collect();
        assert_eq!(walk(&items, 100), items);
        assert_eq!(walk(&items, 1_001), items);
        assert_eq!(walk(&[], 10), Vec::<String>::new());
    }

    #[test]
    fn a_cursor_of_another_list_and_junk_are_refused() {
        let items = vec!["a".to_owned(), "b".to_owned()];
        let (_, next) = page("prompts", &items, |s| s, None, 1).unwrap();
        for cursor in [next.unwrap(), "junk".to_owned(), String::new()] {
            let request = PaginatedRequestParams::default().with_cursor(Some(cursor));
            let error = page("tools", &items, |s| s, Some(&request), 1).unwrap_err();
            assert_eq!(error.code.0, -32602);
        }
    }
}
