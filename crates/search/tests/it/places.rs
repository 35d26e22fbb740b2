//! Requests for several tools, requests that name an app, and tools that remove things.

use gatewright_search::{Change, Document, Index, Query, Weights};

use crate::support::{document, first, names};

/// A large app for sheets beside a few small ones.
fn tools() -> Vec<Document> {
    let sheets = [
        ("write_range", "Write rows of values to cells of an Excel sheet"),
        ("read_range", "Read rows of values from cells of an Excel sheet"),
        ("rename_sheet", "Rename an Excel sheet"),
        ("copy_sheet", "Copy an Excel sheet to a new last sheet"),
        ("delete_sheet", "Delete an Excel sheet"),
        ("insert_rows", "Insert empty rows into an Excel sheet, also inside a table"),
        ("set_table", "Turn rows of an Excel sheet into a table"),
        ("sort_range", "Sort the rows of a table or range of an Excel sheet"),
        ("create_chart", "Create a chart from rows of an Excel sheet"),
    ];
    let others = [
        ("tracker:list_issues", "List the issues of a project"),
        ("tracker:label_issue", "Add a label to an issue"),
        ("tracker:remove_label", "Remove a label of an issue"),
        ("duck:query", "Execute a statement on the DuckDB file"),
        ("git:commit", "Record the changes of the working tree"),
        ("mail:send", "Send an e-mail to somebody"),
    ];
    let sheets = sheets.iter().map(|(name, about)| document(&format!("excel:{name}"), about));
    sheets.chain(others.iter().map(|(name, about)| document(name, about))).collect()
}

#[test]
fn each_part_of_a_request_has_its_best_tool_among_the_first_five() {
    let index = Index::build(tools());
    for (text, wanted) in [
        (
            "list the issues and write rows to an excel sheet",
            &["tracker:list_issues", "excel:write_range"][..],
        ),
        ("list the issues; write rows to an excel sheet", &["tracker:list_issues", "excel:write_range"]),
        ("list the issues, then write rows to an excel sheet", &["tracker:list_issues", "excel:write_range"]),
        (
            "1. list the issues 2. write rows to an excel sheet 3. create a chart of the rows of the excel sheet",
            &["tracker:list_issues", "excel:write_range", "excel:create_chart"],
        ),
        (
            "write rows to an excel sheet\nsort the rows of the sheet\ncommit the changes\nsend an e-mail",
            &["excel:write_range", "excel:sort_range", "git:commit", "mail:send"],
        ),
    ] {
        let found = names(&index, &Query::new(text));
        assert!(wanted.iter().all(|tool| found.iter().any(|name| name == tool)), "{text}: {found:?}");
    }
}

#[test]
fn a_part_of_a_request_keeps_its_place_however_much_better_the_tools_for_another_fit() {
    let index = Index::build(tools());
    for (text, wanted) in [
        (
            "sort the rows of a table in the excel sheet, then record what was done",
            ["excel:sort_range", "git:commit"],
        ),
        (
            "insert rows into a table of the excel sheet; list open things",
            ["excel:insert_rows", "tracker:list_issues"],
        ),
        ("turn the rows of the excel sheet into a table, and execute it", ["excel:set_table", "duck:query"]),
    ] {
        assert_eq!(names(&index, &Query::new(text).top_k(2)), wanted, "{text}");
    }
}

#[test]
fn hits_are_the_same_however_many_are_asked_for_from_five_on() {
    let index = Index::build(tools());
    let text = "copy the excel sheet, write rows to it and list the issues";
    let five = names(&index, &Query::new(text));
    let more = names(&index, &Query::new(text).top_k(12));
    assert_eq!(five, more[..five.len()]);
    let hits = index.search(&Query::new(text).top_k(12)).hits;
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
}

#[test]
fn a_word_akin_to_the_id_of_an_app_whose_tools_alone_have_it_keeps_a_place_for_the_app() {
    let index = Index::build(tools());
    let text = "how many rows does the table have, sorted by values, in the duckdb";
    assert!(names(&index, &Query::new(text)).iter().any(|name| name == "duck:query"));
    let apps = ["excel".to_owned()];
    let found = names(&index, &Query::new(text).app_ids(Some(&apps)));
    assert!(!found.is_empty() && found.iter().all(|name| name.starts_with("excel:")), "{found:?}");
    let sees = |name: &str| name != "duck:query";
    let query = Query::new(text).visible(gatewright_search::Visible::By(&sees));
    assert!(!names(&index, &query).contains(&"duck:query".to_owned()));
}

#[test]
fn a_word_that_most_tools_of_an_app_have_and_no_others_keeps_a_place_for_the_app() {
    let base = ["read", "write", "tables"].map(|verb| document(&format!("db:{verb}"), "SQLite database"));
    let index = Index::build(tools().into_iter().chain(base));
    let text = "how many rows does the table have, sorted by values, in sqlite";
    let found = names(&index, &Query::new(text));
    assert!(found.iter().any(|name| name.starts_with("db:")), "{found:?}");
}

#[test]
fn places_are_the_same_after_updates_as_in_an_index_built_anew() {
    let anew = Index::build(tools());
    let stale = ["duck:vacuum", "excel:open_duckdb", "mail:duckdb"].map(|name| document(name, "Old DuckDB"));
    let stepwise = stale
        .iter()
        .cloned()
        .chain(tools())
        .fold(Index::default(), |index, document| index.updated([Change::Upsert(document)]));
    let gone = stale.iter().map(|document| Change::Remove(document.name.clone()));
    let stepwise = stepwise.updated(gone);
    for text in ["rows of the table in duckdb", "sort rows of a table in duckdb; list the issues"] {
        let query = Query::new(text).top_k(100);
        assert_eq!(anew.search(&query), stepwise.search(&query), "{text}");
    }
}

#[test]
fn a_tool_that_removes_comes_behind_others_unless_the_request_asks_for_that() {
    let index = Index::build(tools());
    let place = |text: &str, tool: &str| {
        let found = names(&index, &Query::new(text).top_k(15));
        found.iter().position(|name| name == tool).unwrap_or(usize::MAX)
    };
    let label = ("tracker:label_issue", "tracker:remove_label");
    assert!(place("issue with a label", label.0) < place("issue with a label", label.1));
    assert!(place("an excel sheet", "excel:delete_sheet") > place("an excel sheet", "excel:copy_sheet"));
    for (text, tool) in [
        ("remove the label of an issue", "tracker:remove_label"),
        ("delete an excel sheet", "excel:delete_sheet"),
    ] {
        let found = first(&index, text);
        assert_eq!(found.as_deref(), Some(tool), "{text}");
    }
}

#[test]
fn of_near_ties_the_tool_for_words_that_no_better_one_has_comes_first() {
    let tools = || {
        let ways = ["rows", "row", "row_now", "row_again", "rows_fast"];
        let copies = ways.map(|way| document(&format!("excel:write_{way}"), "Write rows of an Excel sheet"));
        copies.into_iter().chain([document("mail:send", "Send an e-mail message to somebody")])
    };
    let text = "Write the rows of the Excel sheet. Sum them. Check them. Sort them. Save them. Send them.";
    let place = |weights: Weights, text: &str| {
        let found = names(&Index::build_with(weights, tools()), &Query::new(text).top_k(10));
        found.iter().position(|name| name == "mail:send")
    };
    let without = || Weights { variety: 0.0, ..Weights::default() };
    assert_eq!((place(without(), text), place(Weights::default(), text)), (Some(2), Some(1)));
    let text = "rows of the excel sheet for somebody";
    assert_eq!(place(without(), text), place(Weights::default(), text), "a request with one part");
}
