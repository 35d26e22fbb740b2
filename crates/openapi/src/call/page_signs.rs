//! Signs of pages in answers: the next one, their number, and whether there are more.

use serde_json::Value;

/// Places of the address of the next page in an answer.
pub(super) const NEXT_URLS: [&str; 16] = [
    "/next",
    "/links/next/href",
    "/links/next",
    "/_links/next/href",
    "/_links/next",
    "/next_page_url",
    "/nextPageUrl",
    "/next_url",
    "/nextUrl",
    "/nextLink",
    "/@odata.nextLink",
    "/paging/next",
    "/pagination/next",
    "/meta/next",
    "/info/next",
    "/page/next",
];
/// Places of the cursor of the next page.
pub(super) const NEXT_CURSORS: [&str; 31] = [
    "/next_cursor",
    "/nextCursor",
    "/next_page_token",
    "/nextPageToken",
    "/next_token",
    "/nextToken",
    "/NextToken",
    "/continuation_token",
    "/continuationToken",
    "/response_metadata/next_cursor",
    "/metadata/continue",
    "/meta/next_cursor",
    "/meta/nextCursor",
    "/meta/next_token",
    "/meta/cursor",
    "/meta/after_cursor",
    "/pagination/next_cursor",
    "/pagination/nextCursor",
    "/pagination/next_token",
    "/pagination/cursor",
    "/paging/next/after",
    "/paging/cursors/after",
    "/paging/next_cursor",
    "/pageInfo/endCursor",
    "/page_info/end_cursor",
    "/links/next_cursor",
    "/next_page",
    "/cursor",
    "/bookmark",
    "/marker",
    "/next",
];
/// Places of a flag that says whether there are more items.
pub(super) const MORE_FLAGS: [&str; 16] = [
    "/has_more",
    "/hasMore",
    "/has_next",
    "/hasNext",
    "/has_next_page",
    "/hasNextPage",
    "/more",
    "/meta/has_more",
    "/meta/has_next",
    "/pagination/has_more",
    "/pagination/hasMore",
    "/pagination/has_next",
    "/paging/has_more",
    "/page_info/has_next_page",
    "/pageInfo/hasNextPage",
    "/links/has_more",
];
/// Places of a flag that says that there are no more items.
pub(super) const LAST_FLAGS: [&str; 4] = ["/last", "/isLast", "/is_last", "/meta/is_last"];
/// Places of the number of a page.
pub(super) const PAGE_NUMBERS: [&str; 18] = [
    "/page",
    "/pageNumber",
    "/page_number",
    "/pageNo",
    "/pageIndex",
    "/page_index",
    "/currentPage",
    "/current_page",
    "/page/number",
    "/pageable/pageNumber",
    "/meta/page",
    "/meta/currentPage",
    "/meta/current_page",
    "/pagination/page",
    "/pagination/currentPage",
    "/pagination/current_page",
    "/paging/page",
    "/number",
];
/// Places of the number of items before those of an answer.
pub(super) const OFFSET_NUMBERS: [&str; 6] =
    ["/offset", "/startIndex", "/start", "/skip", "/meta/offset", "/pagination/offset"];
/// Places of the number of all items.
pub(super) const TOTALS: [&str; 14] = [
    "/total_count",
    "/totalCount",
    "/total",
    "/totalResults",
    "/total_results",
    "/totalItems",
    "/total_items",
    "/totalElements",
    "/page/totalElements",
    "/meta/totalCount",
    "/meta/total",
    "/meta/total_count",
    "/pagination/total",
    "/paging/total",
];

/// The flag of an answer that says whether there are more items.
pub(super) fn has_more(body: &Value) -> Option<bool> {
    let flag = |place: &&str| body.pointer(place)?.as_bool();
    MORE_FLAGS.iter().find_map(flag).or_else(|| LAST_FLAGS.iter().find_map(flag).map(|is_last| !is_last))
}

/// Returns `true` if the answer says that it failed, with whatever status.
pub(super) fn says_failed(body: &Value) -> bool {
    let is_false = |name: &str| body.get(name) == Some(&Value::Bool(false));
    let is_given = |name: &str| match body.get(name) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    };
    is_false("ok") || is_false("success") || is_given("error") || is_given("errors")
}

/// Returns `true` if the answer has a cursor of a next page, of whatever kind.
pub(super) fn names_next(body: &Value) -> bool {
    let is_next = |place: &&&str| {
        let name = place.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        name.len() > "next".len() && name.starts_with("next") || name.starts_with("continu")
    };
    NEXT_CURSORS.iter().filter(is_next).filter_map(|place| body.pointer(place)).any(|value| match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    })
}

/// A number, or the text of one.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
