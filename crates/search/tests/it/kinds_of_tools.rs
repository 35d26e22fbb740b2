//! Sets of tools unlike those the ranking was made on: few, alike, in other spellings and languages, long, or bare.

use gatewright_search::{Index, Query};

use crate::support::{document, first, names};

#[test]
fn the_spelling_of_names_makes_no_difference() {
    for (list, delete) in [
        ("git:list_open_issues", "git:delete_branch"),
        ("git:listOpenIssues", "git:deleteBranch"),
        ("git:list-open-issues", "git:delete-branch"),
        ("git:LIST_OPEN_ISSUES", "git:DELETE_BRANCH"),
    ] {
        let index = Index::build([document(list, ""), document(delete, ""), document("git:merge", "")]);
        assert_eq!(first(&index, "which issues are open").as_deref(), Some(list));
        assert_eq!(first(&index, "delete my old branch").as_deref(), Some(delete));
    }
}

#[test]
fn of_tools_alike_in_several_apps_the_one_of_the_app_that_is_named_is_first() {
    let apps = ["slack", "discord", "telegram", "matrix"];
    let tools = apps.map(|app| document(&format!("{app}:send_message"), "Sends a message to a channel."));
    let index = Index::build(tools);
    for app in apps {
        let found = names(&index, &Query::new(&format!("send a message to my {app} channel")));
        assert_eq!(found[0], format!("{app}:send_message"));
        assert_eq!(found.len(), apps.len(), "the others would do as well");
    }
}

#[test]
fn descriptions_in_other_languages_are_found_in_their_language() {
    let index = Index::build([
        document("a:eins", "Löscht eine Rechnung endgültig."),
        document("a:deux", "Envoie un courriel à un collègue."),
        document("a:tres", "Busca vuelos entre dos ciudades."),
        document("a:four", "翻译文本成其他语言"),
        document("a:five", "Создаёт новый отчёт за месяц."),
    ]);
    for (query, name) in [
        ("Rechnung löschen", "a:eins"),
        ("courriel pour un collegue", "a:deux"),
        ("vuelos ciudades", "a:tres"),
        ("翻译", "a:four"),
        ("новый отчёт", "a:five"),
    ] {
        assert_eq!(first(&index, query).as_deref(), Some(name), "{query}");
    }
}

#[test]
fn a_very_long_description_neither_hides_its_tool_nor_those_of_few_words() {
    let padding = "It works on every platform with many options that are described at length in the manual. "
        .repeat(80);
    let index = Index::build([
        document("db:run_migration", &format!("Migrates the schema of a database. {padding}")),
        document("db:backup", "Copies a database."),
        document("log:tail", "Shows the last lines of a log."),
    ]);
    assert_eq!(first(&index, "migrate the database schema").as_deref(), Some("db:run_migration"));
    assert_eq!(first(&index, "copy the database").as_deref(), Some("db:backup"));
    assert_eq!(first(&index, "last lines of the log").as_deref(), Some("log:tail"));
}
