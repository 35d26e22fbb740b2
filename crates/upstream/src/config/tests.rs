use super::*;

fn read(json: &str) -> Result<UpstreamConfig, serde_json::Error> {
    serde_json::from_str(json)
}

#[test]
fn a_command_needs_nothing_else_and_a_misspelt_key_is_refused() {
    let config = read(r#"{"command": "server", "timeout": "5s"}"#).unwrap();
    assert_eq!(config.problems(), []);
    assert_eq!((config.timeout.as_secs(), config.max_concurrency), (5, 64));
    assert!(read(r#"{"comand": "server"}"#).unwrap_err().to_string().contains("comand"));
}

#[test]
fn keys_that_do_not_fit_together_are_named() {
    for (json, named) in [
        ("{}", "`command`"),
        (r#"{"command": "a", "url": "http://x"}"#, "not both"),
        (r#"{"url": "ftp://x"}"#, "`url`"),
        (r#"{"url": "http://x", "args": ["a"]}"#, "`args`"),
        (r#"{"command": "a", "headers": {"a": "b"}}"#, "`headers`"),
        (r#"{"command": "a", "type": "sse"}"#, "`type`"),
        (r#"{"command": "a", "maxConcurrency": 0}"#, "`maxConcurrency`"),
        (r#"{"command": "a", "maxSessions": 0}"#, "`maxSessions`"),
        (r#"{"command": "a", "maxCatalogBytes": 10}"#, "`maxCatalogBytes`"),
        (r#"{"command": "a", "questionTimeout": "10ms"}"#, "`questionTimeout`"),
        (r#"{"command": "a", "questionTimeout": "2d"}"#, "`questionTimeout`"),
        (r#"{"command": "a", "sessionIdle": "10ms"}"#, "`sessionIdle`"),
        (r#"{"url": "http://x", "auth": {"type": "oauth"}, "sessions": "shared"}"#, "`sessions: shared`"),
        (r#"{"url": "http://x", "headers": {"Accept": "b"}}"#, "`Accept`"),
        (r#"{"url": "http://x", "type": "sse", "auth": {"type": "oauth"}}"#, "`type: sse`"),
        (r#"{"url": "http://x", "auth": {"type": "oauth", "clientSecret": "s"}}"#, "`auth.clientId`"),
        (r#"{"url": "http://x", "auth": {"type": "oauth", "issuer": "x"}}"#, "`auth.issuer`"),
        (r#"{"command": "a", "restart": {"jitter": 2}}"#, "`restart.jitter`"),
    ] {
        let problems = read(json).unwrap().problems();
        assert!(problems.len() == 1 && problems[0].problem.contains(named), "{json}: {problems:?}");
    }
}

#[test]
fn every_problem_is_named() {
    let json = r#"{"url": "ftp://x", "args": ["a"], "maxConcurrency": 0, "restart": {"jitter": 2}}"#;
    let problems = read(json).unwrap().problems();
    let paths: Vec<&str> = problems.iter().map(|problem| &*problem.path).collect();
    assert_eq!(paths, ["args", "url", "maxConcurrency", "restart.jitter"]);
}

#[test]
fn debug_shows_no_secret() {
    let config = read(
        r#"{"url": "http://x/mcp", "headers": {"k": "hush-one"}, "env": {"E": "hush-two"},
            "auth": {"type": "bearer", "token": "hush-three"}}"#,
    );
    assert!(!format!("{config:?}").contains("hush"));
}

#[test]
fn a_command_inherits_only_what_the_list_names() {
    let parent = HashMap::from([
        ("PATH".to_owned(), "/bin".to_owned()),
        ("AWS_SECRET_ACCESS_KEY".to_owned(), "x".to_owned()),
    ]);
    let config = read(r#"{"command": "a", "env": {"A": "1"}}"#).unwrap();
    let expected = [("PATH".to_owned(), "/bin".to_owned()), ("A".to_owned(), "1".to_owned())];
    assert_eq!(config.environment(&parent), expected);
}

#[test]
fn values_of_arguments_that_are_named_like_credentials_are_credentials() {
    let of = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        credentials_of(&args).iter().map(|secret| secret.expose().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(&["--api-key=abc", "-v", "--token", "def", "--name", "x"]), ["abc", "def"]);
    assert_eq!(of(&["run", "-e", "API_KEY=abc", "-e", "MODE=fast"]), ["abc"]);
    assert!(of(&["--header", "Authorization: Bearer abcd1234"]).contains(&"abcd1234".to_owned()));
    assert!(of(&["server.js", "token", "--token", "--verbose", "--token"]).is_empty());
}
