//! Work on a query grows no faster than the query, up to the length that is read of it.

use gatewright_search::{Index, Query};

use crate::support::document;

#[path = "../../../../tests/growth/mod.rs"]
mod work;

use work::{SHAPES, assert_linear, assert_linear_up_to, repeated};

/// Bytes of a query that are read.
const READ: usize = 8 * 1024;

#[test]
fn searching_grows_no_faster_than_the_query() {
    let words = ["send", "mail", "list", "users", "invoice", "file", "delete", "calendar"];
    let pairs = words.iter().flat_map(|app| words.iter().map(move |name| (app, name)));
    let tool = |(app, name)| document(&format!("{app}:{name}"), &format!("{name} things of the {app}"));
    let index = Index::build(pairs.map(tool));
    // Words that are known, nearly known and unknown, and many different ones.
    let own = ["send mail ", "usres ", "listUsers", "a and then b ", "x_y-", "send,"];
    for piece in SHAPES.into_iter().chain(own) {
        let search = |text: &str| drop(std::hint::black_box(index.search(&Query::new(text))));
        assert_linear(piece, |len| repeated(piece, len), search);
        assert_linear_up_to(READ, piece, |len| repeated(piece, len), search);
    }
    let different = |len: usize| (0..len / 8).map(|n| format!("w{n:06} ")).collect::<String>();
    let search = |text: &str| drop(std::hint::black_box(index.search(&Query::new(text))));
    assert_linear_up_to(READ, "different words", different, search);
}
