//! A large app beside small ones.

use gatewright_search::{Change, Document, Index, Query};
use serde_json::json;

use crate::support::schema;

const ACTIONS: [(&str, &str); 10] = [
    ("list", "Lists the {}s of a repository, the most recent first"),
    ("get", "Gets a {} of a repository. Users with read access to the repository can use it"),
    ("create", "Creates a {} in a repository"),
    ("update", "Updates a {} of the repository"),
    ("delete", "Deletes a {} of the repository"),
    (
        "list_for_org",
        "Lists the {}s of an organization. Commit history, log and repository details are left out",
    ),
    ("search", "Finds {}s via various criteria. Shows recent ones in the log of the repository"),
    ("check", "Checks if a {} exists in the repository"),
    ("add", "Adds a {} to a commit of the repository"),
    ("compare", "Compares two {}s against one another, and shows the commit log between them"),
];
const THINGS: [&str; 20] = [
    "commit",
    "branch",
    "tag",
    "release",
    "issue",
    "label",
    "milestone",
    "pull_request",
    "review",
    "git_blob",
    "git_tree",
    "git_ref",
    "git_commit",
    "git_tag",
    "workflow",
    "artifact",
    "deployment",
    "commit_comment",
    "commit_status",
    "repository",
];

fn document(app: &str, name: &str, description: &str) -> Document {
    Document {
        name: format!("{app}:{name}"),
        app_id: app.to_owned(),
        description: description.to_owned(),
        input_schema: schema(json!({"type": "object", "properties": {
            "repo": {"type": "string", "description": "The repository without the `.git` extension"}}})),
    }
}

/// 200 tools of a service over HTTP.
fn large() -> Vec<Document> {
    let of = |thing: &'static str| {
        ACTIONS.iter().map(move |(action, about)| {
            document(
                "hub",
                &format!("repos_{action}_{thing}"),
                &about.replace("{}", &thing.replace('_', " ")),
            )
        })
    };
    THINGS.into_iter().flat_map(of).collect()
}

/// The tools of a repository on disk.
fn small() -> Vec<Document> {
    let tools = [
        ("git_log", "Shows the commit logs"),
        ("git_status", "Shows the working tree status"),
        ("git_diff", "Shows differences between branches or commits"),
        ("git_add", "Adds file contents to the staging area"),
        ("git_branch", "Lists Git branches"),
        ("git_show", "Shows the contents of a commit"),
    ];
    tools.into_iter().map(|(name, about)| document("git", name, about)).collect()
}

fn found(index: &Index, query: &str) -> Vec<String> {
    let hits = index.search(&Query::new(query)).hits;
    assert!(hits.is_sorted_by(|a, b| a.score >= b.score), "{query}");
    hits.into_iter().map(|hit| hit.name).collect()
}

#[test]
fn a_large_app_does_not_crowd_out_the_tool_of_an_app_that_the_query_names() {
    let index = Index::build(large().into_iter().chain(small()));
    for query in [
        "git_log",
        "git log",
        "show the commit log of a git repository",
        "show recent commits of the local git repository",
        "show the git commit history",
        "git log of the repository in /tmp/repo",
        "commit log",
    ] {
        let found = found(&index, query);
        assert!(found.iter().any(|name| name == "git:git_log"), "{query}: {found:?}");
    }
}

#[test]
fn the_tools_of_a_large_app_still_come_first_where_they_fit_best() {
    let index = Index::build(large().into_iter().chain(small()));
    for (query, tool) in [
        ("list the issues of a repository", "hub:repos_list_issue"),
        ("create a release", "hub:repos_create_release"),
        ("delete a milestone of the hub", "hub:repos_delete_milestone"),
    ] {
        assert_eq!(found(&index, query).first().map(String::as_str), Some(tool), "{query}");
    }
}

#[test]
fn an_app_that_comes_in_parts_is_weighed_as_a_whole() {
    let whole = Index::build(large().into_iter().chain(small()));
    let parts = large()
        .into_iter()
        .chain(small())
        .fold(Index::default(), |index, document| index.updated([Change::Upsert(document)]));
    for query in [
        "show the git commit history",
        "status of the git working tree",
        "list branches",
        "commit log",
        "hub releases",
    ] {
        assert_eq!(found(&whole, query), found(&parts, query), "{query}");
    }
}
