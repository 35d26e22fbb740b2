//! `gatewright check`.

use std::process::Command;

use serde_json::Value;

use crate::support::gatewright;

fn check(extension: &str, text: &str) -> (i32, Value) {
    let file = tempfile::Builder::new().suffix(extension).tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let output =
        Command::new(gatewright()).args(["check", "--json", "--config"]).arg(file.path()).output().unwrap();
    let body = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code().unwrap(), body)
}

#[test]
fn a_good_file_of_each_format_is_ok() {
    for (extension, text) in [
        (".yaml", "info: { name: acme, version: 1.0.0 }\napps:\n  crm: { builtin: crm }\n"),
        (".json", r#"{"apps": {"files": {"command": "npx", "args": ["-y", "x"], "timeout": "5s"}}}"#),
        (".toml", "toolNames = \"underscore\"\n[apps.web]\nurl = \"https://example.com/mcp\"\n"),
    ] {
        let (code, body) = check(extension, text);
        assert_eq!((code, &body["ok"]), (0, &Value::Bool(true)), "{extension}: {body:#}");
    }
}

#[test]
fn every_bad_field_is_named_with_its_line_and_a_suggestion() {
    let text = "http:\n  prot: 3000\napps:\n  crm: { builtin: crmm }\n  bad id: { builtin: crm }\ncodecall:\n  vm: { timeoutMs: 0 }\ntoolNames: dots\n";
    let (code, body) = check(".yaml", text);
    assert_eq!(code, 2);
    let findings = body["findings"].as_array().unwrap();
    let find = |path: &str| {
        findings.iter().find(|f| f["path"] == path).unwrap_or_else(|| panic!("{path}: {body:#}"))
    };
    assert_eq!(find("http.prot")["line"], 2);
    assert!(find("http.prot")["problem"].as_str().unwrap().contains("`port`"));
    assert_eq!(find("apps.crm.builtin")["line"], 4);
    assert_eq!(find("toolNames")["line"], 8);
}

#[test]
fn problems_of_every_section_are_reported_at_once() {
    let text = "http: { prot: 1,\n  host: here }\ncodecall:\n  vm: { timeoutMs: 0 }\nauth:\n  mode: transparent\ninfo:\n  nam: x\napps:\n  web: { url: https://a.example/mcp, timeout: soon }\n  \
                cli: { command: ' ' }\n  bad id: { builtin: crm }\nrateLimits:\n  - { tool: 'c*m:x', limit: 1, window: 1s }\n";
    let (code, body) = check(".yaml", text);
    assert_eq!(code, 2);
    let findings = body["findings"].as_array().unwrap().iter();
    let found: Vec<(u64, &str)> = findings
        .map(|finding| (finding["line"].as_u64().unwrap(), finding["path"].as_str().unwrap()))
        .collect();
    let expected = [
        (1, "http.prot"),
        (2, "http.host"),
        (4, "codecall.vm.timeoutMs"),
        (8, "info.nam"),
        (10, "apps.web.timeout"),
        (11, "apps.cli.command"),
        (12, "apps.bad id"),
        (14, "rateLimits.0.tool"),
    ];
    // The checks of `auth` need the address that the server listens on: they wait until it can be read.
    assert_eq!(found, expected, "{body:#}");
}

#[test]
fn values_of_the_wrong_type_and_contradictions_are_told_together_with_what_to_write() {
    let text = "http: { port: '3000x', drainTimeout: 1h }\nauth:\n  mode: orchestrated\n  requirePar: maybe\n  scopes: { a: A }\n  \
                clients: [{ clientId: x, scopes: [b] }]\napps:\n  web: { url: 'http://x/', command: npx, timeout: 5 }\n  \
                run: { command: npx, args: '-y', headers: { a: b } }\nrateLimits:\n  - { tool: crm, limit: 1, window: 5 }\n";
    let (code, body) = check(".yaml", text);
    let findings = body["findings"].as_array().unwrap();
    let problem = |path: &str| {
        let found = findings.iter().find(|finding| finding["path"] == path);
        found.unwrap_or_else(|| panic!("{path}: {body:#}"))["problem"].as_str().unwrap()
    };
    for (path, told) in [
        ("http.port", "must be a whole number"),
        ("http.drainTimeout", ""),
        ("auth.requirePar", "must be `true` or `false`"),
        ("auth.clients.0.scopes.0", "is not one of `auth.scopes`"),
        ("apps.web.timeout", "must be a duration with its unit, such as `5s`"),
        ("apps.run.args", "must be a list, even of one value: write `[\"-y\"]`"),
        ("apps.run.headers", "belongs to an app with `url`"),
        ("rateLimits.0.window", "must be a duration with its unit, such as `5s`"),
    ] {
        assert!(problem(path).starts_with(told) || problem(path).contains(told), "{path}: {body:#}");
    }
    assert!(body.to_string().contains("not both"), "a command and a url: {body:#}");
    assert_eq!((code, body["more"].as_u64()), (2, Some(0)));
}

#[test]
fn a_port_for_two_listeners_a_password_in_the_public_address_and_devices_as_tls_files_are_told() {
    let paths = |text: &str| -> Vec<String> {
        let (_, body) = check(".yaml", &format!("{text}apps: {{ crm: {{ builtin: crm }} }}\n"));
        let findings = body["findings"].as_array().unwrap();
        assert!(!body.to_string().contains("hush"), "{body:#}");
        findings.iter().map(|finding| finding["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths("http: { port: 4000 }\nadmin: { port: 4000 }\n"), ["admin.port"]);
    let token = "token: 0f4c1d8e2b7a9653";
    let everywhere = format!("http: {{ port: 4000 }}\nadmin: {{ port: 4000, host: 0.0.0.0, {token} }}\n");
    assert_eq!(paths(&everywhere), ["admin.port"]);
    for apart in [
        "http: { port: 4000 }\nadmin: { port: 4001 }\n",
        "http: { port: 0 }\nadmin: { port: 0 }\n",
        "http: { port: 4000 }\nadmin: { port: 4000, host: 127.0.0.2 }\n",
    ] {
        assert_eq!(paths(apart), Vec::<String>::new(), "{apart}");
    }
    let device = "http: { tls: { cert: /dev/zero, key: /dev/zero } }\n";
    assert_eq!(paths(device), ["http.tls.cert", "http.tls.key"]);
    for address in ["https://ann:hush@mcp.example", "https://ann@mcp.example"] {
        let text = format!("http: {{ publicUrl: '{address}' }}\nauth: {{ allowDefaultPublic: true }}\n");
        assert_eq!(paths(&text), ["http.publicUrl"]);
    }
}

#[test]
fn a_value_that_cannot_be_read_does_not_make_others_look_wrong() {
    for text in [
        // Without the mode, nothing is known about who signs in.
        "auth: { mode: orchestratd, tokenStorage: { type: sqlite } }\napps: { web: { url: 'https://x/', auth: { type: oauth } } }\n",
        // Without the address, the app has neither.
        "apps: { web: { url: 5 } }\n",
        // Without the store, nothing is known about keys.
        "auth: { tokenStorage: { type: redos } }\nexecutions: { store: redis }\napps: { crm: { builtin: crm } }\n",
    ] {
        let (code, body) = check(".yaml", text);
        assert_eq!((code, body["findings"].as_array().unwrap().len()), (2, 1), "{text}: {body:#}");
    }
}

#[test]
fn the_file_is_an_argument_or_an_option_and_may_be_an_mcp_servers_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let good = file("good.yaml", "apps: { crm: { builtin: crm } }\n");
    let servers = file("mcp.json", r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y"]}}}"#);
    let bad = file("bad.json", r#"{"mcpServers": {"files": {"command": "npx", "url": "http://x"}}}"#);
    let run = |arguments: &[&str]| {
        let output = Command::new(gatewright()).arg("check").args(arguments).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code().unwrap(), text)
    };
    for arguments in
        [&[&*good][..], &["--config", &good], &["--mcp-config", &servers], &[&good, "--mcp-config", &servers]]
    {
        let (code, text) = run(arguments);
        assert!(code == 0 && text.contains(": ok"), "{arguments:?}: {text}");
    }
    let (code, text) = run(&[&good, "--mcp-config", &bad]);
    assert!(
        code == 2 && text.contains(&format!("{bad}:1: mcpServers.files")) && text.contains("not both"),
        "{text}"
    );
    let (code, text) = run(&[]);
    assert!(code == 2 && text.contains("gatewright.yaml"), "{text}");
    assert_eq!(run(&[&good, "--config", &good]).0, 2, "which of the two?");
}

#[test]
fn instances_without_a_redis_between_them_and_the_removed_address_are_told() {
    let check = |cluster: &str, auth: &str| {
        let text = format!(
            "http:\n  cluster: {{ key: {}{cluster} }}\n{auth}apps:\n  crm: {{ builtin: crm }}\n",
            "k".repeat(32)
        );
        check(".yaml", &text)
    };
    let refused = |cluster: &str, path: &str, says: &str| {
        let (code, body) = check(cluster, "");
        let finding = &body["findings"][0];
        assert_eq!(
            (code, finding["path"].as_str(), finding["line"].as_u64()),
            (2, Some(path), Some(2)),
            "{body:#}"
        );
        assert!(finding["problem"].as_str().unwrap().contains(says), "{body:#}");
        assert!(!body.to_string().contains("hunter2"), "{body:#}");
    };
    refused("", "http.cluster", "http.cluster.redis");
    refused(", redis: 'http://:hunter2@db'", "http.cluster.redis", "must begin with");
    refused(", redis: 'redis://db', advertise: '10.0.0.5:3000'", "http.cluster.advertise", "delete this key");
    let store = "auth: { tokenStorage: { type: redis, config: { host: db } } }\n";
    for (cluster, auth) in [("", store), (", redis: 'redis://:hunter2@db'", "")] {
        let (code, body) = check(cluster, auth);
        assert_eq!(code, 0, "{body:#}");
    }
}

#[test]
fn text_that_does_not_parse_and_variables_that_are_not_set_are_told() {
    let (code, body) = check(".yaml", "apps: [unclosed");
    assert_eq!((code, body["findings"].as_array().unwrap().len()), (2, 1));
    let (code, body) = check(
        ".yaml",
        "apps:\n  x:\n    url: https://x/mcp\n    auth: { type: bearer, token: \"${NOT_SET_ANYWHERE}\" }\n",
    );
    assert_eq!(code, 2);
    assert_eq!(body["findings"][0]["line"], 4, "{body:#}");
    assert!(body["findings"][0]["problem"].as_str().unwrap().contains("NOT_SET_ANYWHERE"));
}

#[test]
fn text_that_does_not_parse_is_told_with_its_line_and_without_the_secrets_around_it() {
    for (extension, text) in [
        (".yaml", "apps:\n  a: { url: x, token: hush }\n  b: [\n"),
        (".yaml", "a: hush\na: hush\n"),
        (".json", "{\n\"token\": \"hush\", \"apps\": ]\n}"),
        (".toml", "a = 1\ntoken = \"hush\nb = 1\n"),
    ] {
        let (code, body) = check(extension, text);
        assert_eq!(code, 2, "{body:#}");
        let findings = body["findings"].as_array().unwrap();
        assert!(findings.len() == 1 && findings[0]["line"].as_u64() >= Some(2), "{extension}: {body:#}");
        assert!(!body["findings"].to_string().contains("hush"), "{extension}: {body:#}");
    }
}

#[test]
fn an_endpoint_at_an_address_of_the_authorization_server_is_refused_with_advice() {
    for path in ["/oauth/token", "/.well-known/jwks.json", "/healthz", "/mcp/../oauth"] {
        let (code, body) =
            check(".yaml", &format!("apps: {{ crm: {{ builtin: crm }} }}\nhttp: {{ path: {path} }}\n"));
        let finding = &body["findings"][0];
        assert_eq!(
            (code, finding["path"].as_str(), finding["line"].as_u64()),
            (2, Some("http.path"), Some(2)),
            "{body:#}"
        );
        assert!(finding["problem"].as_str().unwrap().contains("such as `/mcp`"), "{body:#}");
    }
}

/// Standard output of `check` in its form for people.
fn printed(text: &str) -> String {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let output = Command::new(gatewright()).args(["check", "--config"]).arg(file.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn keys_and_values_are_printed_without_control_characters() {
    let text = "\"\\e[2J\\x9b1m\\u202e\": 1\ntoolNames: \"\\e[31mdots\"\napps: { crm: { builtin: \"a\\nb: ok\" } }\n";
    let printed = printed(text);
    assert_eq!(printed.lines().count(), 3, "{printed:?}");
    assert!(printed.contains(r"\u{1b}[2J\u{9b}1m\u{202e}: unknown key"), "{printed:?}");
    let is_terminal_control = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!printed.contains(is_terminal_control), "{printed:?}");
    let (_, body) = check(".yaml", text);
    assert!(!body["findings"].as_array().unwrap().iter().any(|finding| {
        [&finding["path"], &finding["problem"]]
            .iter()
            .any(|text| text.as_str().unwrap().contains(char::is_control))
    }));
}

#[test]
fn a_hundred_findings_are_listed_and_the_others_counted() {
    let keys: String = (0..3_000).map(|n| format!("key{n}: 1\n")).collect();
    let (code, body) = check(".yaml", &keys);
    assert_eq!(
        (code, body["findings"].as_array().unwrap().len(), &body["more"]),
        (2, 100, &Value::from(2_900))
    );
    let printed = printed(&keys);
    assert_eq!(printed.lines().count(), 101);
    assert!(printed.trim_end().ends_with("and 2900 more problems"), "{}", &printed[printed.len() - 200..]);
}

#[test]
fn a_scope_that_a_tool_asks_for_and_nobody_can_be_granted_is_named() {
    let text = |auth: &str| {
        format!(
            "apps:\n  crm:\n    builtin: crm\n    tools:\n      users_list: {{ scopes: [extra] }}\n{auth}"
        )
    };
    let (code, body) = check(".yaml", &text("auth: { mode: orchestrated, type: local }\n"));
    assert_eq!((code, body["findings"].as_array().unwrap().len()), (2, 1), "{body:#}");
    let finding = &body["findings"][0];
    assert!(finding["path"].as_str().unwrap().starts_with("apps.crm.tools.users_list.scopes"), "{body:#}");
    assert_eq!(finding["line"], 5);
    for auth in ["", "auth: { mode: orchestrated, type: local, scopes: { extra: More } }\n"] {
        assert_eq!(check(".yaml", &text(auth)).0, 0, "{auth}");
    }
}

#[test]
fn a_bad_vector_store_is_told_by_its_type_without_showing_its_secrets() {
    let check = |store: &str| {
        let text = format!(
            "apps: {{ crm: {{ builtin: crm }} }}\ncodecall: {{ embedding: {{ strategy: embedding, model: x, store: {store} }} }}\n"
        );
        let (code, body) = check(".yaml", &text);
        assert_eq!(code, 2, "{body:#}");
        assert!(!body.to_string().contains("s3cret"), "{body:#}");
        let findings = body["findings"].as_array().unwrap().iter();
        findings
            .map(|f| (f["path"].as_str().unwrap().to_owned(), f["problem"].to_string()))
            .collect::<Vec<_>>()
    };
    for (store, place, told) in [
        ("{ type: pgvector, url: 's3cret', tabel: x }", "store.tabel", "`table`"),
        ("{ type: redis, url: 's3cret' }", "store.type", "pgvector"),
        ("{ url: 's3cret' }", "store.type", ""),
    ] {
        let found = check(store);
        let is_told = |(path, problem): &(String, String)| path.ends_with(place) && problem.contains(told);
        assert!(found.iter().any(is_told), "{found:?}");
    }
    let found = check("{ type: pgvector, url: 'postgres://me:s3cret@h/d', table: 'a b' }");
    assert!(found.iter().any(|(path, _)| path.ends_with("store.table")), "{found:?}");
    assert!(found.iter().any(|(path, _)| path == "codecall.embedding.model"), "{found:?}");
}

#[test]
fn keys_and_values_of_earlier_versions_are_refused_with_what_to_do() {
    for (part, path, advice) in [
        ("auth: { auditFile: /var/log/s3cret }", "auth.auditFile", "`audit.file` takes the events"),
        (
            "codecall: { embedding: { store: { type: file, exactUpTo: 5 } } }",
            "codecall.embedding.store.exactUpTo",
            "delete this key",
        ),
        (
            "codecall: { embedding: { store: { type: qdrant, url: 'http://h', apiKey: s3cret } } }",
            "codecall.embedding.store.type",
            "use `pgvector`",
        ),
    ] {
        let (code, body) = check(".yaml", &format!("apps: {{ crm: {{ builtin: crm }} }}\n{part}\n"));
        let findings = body["findings"].as_array().unwrap();
        assert_eq!((code, findings.len()), (2, 1), "{body:#}");
        assert_eq!((findings[0]["path"].as_str(), findings[0]["line"].as_u64()), (Some(path), Some(2)));
        assert!(findings[0]["problem"].as_str().unwrap().contains(advice), "{body:#}");
        assert!(!body.to_string().contains("s3cret"), "{body:#}");
    }
}

/// Checks a file whose Redis has this `port`, with REDIS_PORT set to `variable`.
fn redis_port(port: Option<&str>, variable: Option<&str>) -> Value {
    let port = port.map(|port| format!(", port: {port}")).unwrap_or_default();
    let text = format!(
        "apps: {{ crm: {{ builtin: crm }} }}\nauth:\n  mode: orchestrated\n  tokenStorage: {{ type: redis, config: {{ host: redis, tls: \"${{REDIS_TLS:-true}}\"{port} }} }}\n"
    );
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let mut command = Command::new(gatewright());
    command.args(["check", "--json", "--config"]).arg(file.path()).env_remove("REDIS_PORT");
    command.envs(variable.map(|value| ("REDIS_PORT", value)));
    let output = command.output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn a_variable_where_a_number_or_a_boolean_belongs_is_one() {
    for port in ["\"${REDIS_PORT:-6379}\"", "'${REDIS_PORT:-6379}'"] {
        for variable in [None, Some("7000"), Some("")] {
            let body = redis_port(Some(port), variable);
            assert_eq!(body["ok"], true, "{port} {variable:?}: {body:#}");
        }
    }
}

#[test]
fn a_bad_redis_port_is_an_error_that_names_the_variable() {
    let written = Some("\"${REDIS_PORT:-6379}\"");
    for (port, variable) in [
        (written, "abc"),
        (written, "70000"),
        (written, "63 79"),
        (None, "abc"),
        (None, "70000"),
        (None, "0"),
    ] {
        let body = redis_port(port, Some(variable));
        let findings = body["findings"].as_array().unwrap();
        let problem = findings.iter().find(|one| one["path"] == "auth.tokenStorage.config.port");
        let problem =
            problem.unwrap_or_else(|| panic!("{port:?} {variable}: {body:#}"))["problem"].as_str().unwrap();
        assert!(problem.contains("REDIS_PORT"), "{port:?} {variable}: {problem}");
    }
    assert_eq!(
        redis_port(None, Some("tcp://10.0.0.7:6380"))["ok"],
        true,
        "as Kubernetes sets it for a Service called redis"
    );
}

#[test]
fn a_key_that_is_there_twice_is_a_finding_in_every_format() {
    for (extension, text) in [
        (".yaml", "apps:\n  crm: { builtin: crm, scopes: [admin] }\n  crm: { builtin: crm }\n"),
        (
            ".json",
            "{\"apps\": {\n\t\"crm\": {\"builtin\": \"crm\", \"scopes\": [\"admin\"]},\n\t\"crm\": {\"builtin\": \"crm\"}}}",
        ),
        (".toml", "[apps.crm]\nbuiltin = \"crm\"\n[apps.crm]\nbuiltin = \"crm\"\n"),
    ] {
        let (code, body) = check(extension, text);
        assert_eq!((code, &body["findings"][0]["line"]), (2, &Value::from(3)), "{extension}: {body:#}");
        let problem = body["findings"][0]["problem"].as_str().unwrap();
        assert!(extension == ".toml" || problem.contains("crm"), "{body:#}");
    }
}
