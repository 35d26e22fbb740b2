//! `gatewright init` and `add`: from the files of clients to a gateway that answers.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread::JoinHandle,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{support::gatewright, terminal::Terminal};

/// A home folder with an empty folder `work`, and files.
fn home(files: &[(&str, &Value)]) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("work")).unwrap();
    for (name, value) in files {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value.to_string()).unwrap();
    }
    home
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(gatewright());
    command
        .args(arguments)
        .current_dir(home.join("work"))
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
    command.stdin(Stdio::null());
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn succeeds(home: &Path, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

fn written(home: &Path) -> String {
    fs::read_to_string(home.join("work/gatewright.yaml")).unwrap()
}

/// A running gateway of the folder's configuration.
struct Gateway {
    base: String,
    process: Child,
    reading: Option<JoinHandle<()>>,
}

impl Gateway {
    fn serve(home: &Path) -> Self {
        // Without watching the file: an app that is added later may be on the internet.
        let mut process =
            command(home, &["serve", "--port", "0", "--no-watch"]).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut before = Vec::new();
        let base = lines.find_map(|line| {
            let found = line
                .split_once("serving MCP on ")
                .and_then(|(_, rest)| Some(rest.split_whitespace().next()?.strip_suffix("/mcp")?.to_owned()));
            before.push(line);
            found
        });
        let base = base.unwrap_or_else(|| panic!("it does not serve: {}", before.join("\n")));
        // So that it can go on writing.
        let reading = Some(std::thread::spawn(move || lines.for_each(drop)));
        Self { base, process, reading }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = self.reading.take().map(JoinHandle::join);
    }
}

#[test]
fn from_the_servers_of_two_clients_to_a_gateway_that_lists_their_tools_in_two_commands() {
    let home = home(&[]);
    let program = home.path().join("sample-server");
    symlink(gatewright(), &program).unwrap();
    let inner = "info: { name: \"${CRM_TOKEN:-}${FREE:-x}\" }\ncodecall: { enabled: false }\n";
    fs::write(
        home.path().join("crm.yaml"),
        format!("{inner}apps: {{ crm: {{ builtin: crm }} }}\nlogging: {{ level: \"${{CRM_LEVEL}}\" }}\n"),
    )
    .unwrap();
    fs::write(
        home.path().join("tickets.yaml"),
        format!("{inner}apps: {{ support: {{ builtin: support }} }}\n"),
    )
    .unwrap();
    let server = |file: &str, env: Value| json!({"command": program, "args": ["serve", "--stdio", "--config", home.path().join(file)], "env": env});
    for (file, name, server) in [
        (
            ".cursor/mcp.json",
            "customers",
            server("crm.yaml", json!({"CRM_TOKEN": "hush-4f1c9d", "CRM_LEVEL": "warn"})),
        ),
        (".config/Claude/claude_desktop_config.json", "my tickets!", server("tickets.yaml", json!({}))),
    ] {
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, json!({"mcpServers": {name: server}}).to_string()).unwrap();
    }
    let init = succeeds(home.path(), &["init", "--yes"]);
    assert!(init.contains("2 apps") && init.contains("gatewright serve") && !init.contains("hush"), "{init}");
    let text = written(home.path());
    assert!(text.contains("# From Cursor (~/.cursor/mcp.json)") && !text.contains("hush"), "{text}");
    let secret = home.path().join("work/gatewright.secrets/customers.CRM_TOKEN");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "hush-4f1c9d");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&secret), mode(secret.parent().unwrap())), (0o600, 0o700));
    succeeds(home.path(), &["check"]);

    let gateway = Gateway::serve(home.path());
    let listed =
        succeeds(home.path(), &["tools", "--url", &format!("{}/mcp?mode=direct", gateway.base), "list"]);
    for tool in ["customers:crm:users_list", "my-tickets:support:tickets_list"] {
        assert!(listed.contains(tool), "{tool}: {listed}");
    }
}

#[test]
fn servers_of_a_project_and_of_every_client_are_found_and_taken_once() {
    let same = json!({"command": "same", "args": ["x"]});
    let home = home(&[
        (".claude.json", &json!({"mcpServers": {"a": same}, "projects": {}})),
        (
            ".cursor/mcp.json",
            &json!({"mcpServers": {"a": {"command": "other"}, "b": same, "gatewright": {"url": "http://127.0.0.1:3000/mcp"}}}),
        ),
        (
            ".config/Code/User/mcp.json",
            &json!({"servers": {"c": {"type": "http", "url": "https://c.example/mcp"}}}),
        ),
        (
            ".codeium/windsurf/mcp_config.json",
            &json!({"mcpServers": {"d": {"serverUrl": "https://d.example/mcp"}}}),
        ),
        (".config/zed/settings.json", &json!({"context_servers": {"e": {"command": "e", "args": []}}})),
        (".gemini/settings.json", &json!({"mcpServers": {"f": {"url": "https://f.example/sse"}}})),
        ("work/.mcp.json", &json!({"mcpServers": {"g": {"command": "${HOME}/g"}}})),
    ]);
    fs::create_dir(home.path().join(".codex")).unwrap();
    let codex = "[mcp_servers.h]\nurl = \"https://h.example/mcp\"\nbearer_token_env_var = \"HOME\"\n";
    fs::write(home.path().join(".codex/config.toml"), codex).unwrap();
    let said = succeeds(home.path(), &["init", "--yes"]);
    assert!(said.contains("`b` of Cursor is the same as `a`"), "{said}");
    let value: Value = serde_saphyr::from_str(&written(home.path())).unwrap();
    let ids: Vec<&String> = value["apps"].as_object().unwrap().keys().collect();
    assert_eq!(ids, ["a", "a-cursor", "c", "d", "e", "h", "f", "g"]);
    assert_eq!(value["apps"]["f"], json!({"type": "sse", "url": "https://f.example/sse"}));
    assert_eq!(value["apps"]["h"]["headers"]["Authorization"], "Bearer ${HOME}");
    assert_eq!(value["apps"]["g"]["command"], "${HOME}/g");
    succeeds(home.path(), &["init", "--from", "windsurf,project", "--force"]);
    let value: Value = serde_saphyr::from_str(&written(home.path())).unwrap();
    assert_eq!(value["apps"].as_object().unwrap().keys().collect::<Vec<_>>(), ["d", "g"]);
}

#[test]
fn a_user_at_a_terminal_chooses_servers_by_number_and_is_asked_before_a_file_is_overwritten() {
    let server = |command: &str| json!({"command": command});
    let servers = json!({"mcpServers": {"a": server("x"), "b": server("y"), "c": server("z")}});
    let home = home(&[(".cursor/mcp.json", &servers)]);
    let work = home.path().join("work");
    let init = || Terminal::start(home.path(), &work, &["init"]);
    let taken = || {
        let value: Value = serde_saphyr::from_str(&written(home.path())).unwrap();
        value["apps"].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(",")
    };

    let mut terminal = init();
    let shown = terminal.until("numbers such as 1,3]");
    assert!(shown.contains("Cursor (~/.cursor/mcp.json): a, b, c") && shown.contains("  2  b "), "{shown}");
    terminal.types("1, 3");
    let (code, text) = terminal.end();
    assert!(code == 0 && text.contains("with 2 apps") && text.contains("gatewright serve"), "{text}");
    assert_eq!(taken(), "a,c");

    // No is no, and so is anything else.
    for answer in ["n", ""] {
        let mut terminal = init();
        terminal.until("gatewright.yaml exists. Overwrite it? [y/N]");
        terminal.types(answer);
        let (code, text) = terminal.end();
        assert!(code == 2 && text.contains("was not changed"), "{text}");
        assert_eq!(taken(), "a,c");
    }
    for (answer, code, apps) in [("perhaps", 2, "a,c"), ("", 0, "a,b,c"), ("n", 0, "crm")] {
        let mut terminal = init();
        terminal.until("Overwrite it? [y/N]");
        terminal.types("y");
        terminal.until("numbers such as 1,3]");
        terminal.types(answer);
        let (ended, text) = terminal.end();
        assert_eq!((ended, taken().as_str()), (code, apps), "{answer}: {text}");
    }
}

#[test]
fn servers_that_cannot_run_and_files_that_cannot_be_read_are_told_and_the_rest_is_written() {
    let home = home(&[(
        ".config/Code/User/mcp.json",
        &json!({"servers": {"asks": {"command": "x", "env": {"T": "${input:my-token}", "KEY": "hush"}}, "works": {"command": "y"}}}),
    )]);
    fs::create_dir(home.path().join(".cursor")).unwrap();
    fs::write(home.path().join(".cursor/mcp.json"), "{\"hush\": ").unwrap();
    let said = succeeds(home.path(), &["init", "--yes"]);
    assert!(said.contains("Cursor (~/.cursor/mcp.json) is left out: it is not JSON"), "{said}");
    assert!(said.contains("`asks` is in the file as a comment") && said.contains("`${MY_TOKEN}`"), "{said}");
    let text = written(home.path());
    assert!(
        text.contains("  # asks:\n  #   command:") && !text.contains("hush") && !said.contains("hush"),
        "{text}"
    );
    succeeds(home.path(), &["check"]);
}

#[test]
fn secrets_go_only_into_a_folder_of_the_user_and_what_is_there_stays() {
    let secret = json!({"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "hush"}}}});
    type Case = (&'static str, fn(&Path), &'static str);
    let cases: [Case; 6] = [
        (
            "link",
            |work| symlink("../leak", work.join("gatewright.secrets")).unwrap(),
            "symbolic link to ../leak",
        ),
        ("link here", |work| symlink(".", work.join("gatewright.secrets")).unwrap(), "symbolic link to ."),
        (
            "dangling",
            |work| symlink("gone", work.join("gatewright.secrets")).unwrap(),
            "symbolic link to gone",
        ),
        ("file", |work| fs::write(work.join("gatewright.secrets"), "").unwrap(), "not a folder"),
        ("open", |work| make_secrets(work, 0o777), "chmod 700"),
        (
            "ignores",
            |work| {
                make_secrets(work, 0o700);
                fs::write(work.join("gatewright.secrets/.gitignore"), "target\n").unwrap();
            },
            ".gitignore in it",
        ),
    ];
    for (kind, prepare, says) in cases {
        let home = home(&[(".cursor/mcp.json", &secret)]);
        let work = home.path().join("work");
        fs::create_dir(home.path().join("leak")).unwrap();
        fs::write(work.join(".gitignore"), "mine\n").unwrap();
        prepare(&work);
        let output = run(home.path(), &["init", "--yes"]);
        assert_eq!(output.status.code(), Some(2), "{kind}: {}", said(&output));
        assert!(said(&output).contains(says) && !said(&output).contains("hush"), "{kind}: {}", said(&output));
        assert!(!work.join("gatewright.yaml").exists() && !work.join("gone").exists(), "{kind}");
        assert_eq!(fs::read_to_string(work.join(".gitignore")).unwrap(), "mine\n", "{kind}");
        assert_eq!(fs::read_dir(home.path().join("leak")).unwrap().count(), 0, "{kind}");
        let ignored = fs::read_to_string(work.join("gatewright.secrets/.gitignore"));
        assert!(kind != "ignores" || ignored.unwrap() == "target\n");
    }
    let home = home(&[(".cursor/mcp.json", &secret)]);
    succeeds(home.path(), &["init", "--yes"]);
    succeeds(home.path(), &["init", "--yes", "--force"]);
    let folder = home.path().join("work/gatewright.secrets");
    assert_eq!(fs::read_to_string(folder.join(".gitignore")).unwrap(), "*\n");
    assert_eq!(fs::read_to_string(folder.join("a.API_KEY")).unwrap(), "hush");
}

fn make_secrets(work: &Path, mode: u32) {
    let folder = work.join("gatewright.secrets");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn servers_of_a_file_of_somebody_else_get_no_files_and_write_no_lines_of_their_own() {
    let odd = "a\nWrote nothing\u{7f}";
    let home = home(&[
        ("id_rsa", &json!("hush")),
        (
            "work/.mcp.json",
            &json!({"mcpServers": {
                odd: {"command": "x", "args": ["\u{7f}\u{85}"]},
                "docs": {"url": "https://x.example/mcp", "headers": {"X": "${file:../id_rsa}"}},
                "same": {"command": "x", "args": ["\u{7f}\u{85}"]},
                "\n\n": {"command": "y"}}}),
        ),
    ]);
    let said = succeeds(home.path(), &["init", "--yes"]);
    assert!(said.contains("a\\nWrote nothing\\u{7f}, docs"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("Wrote nothing")), "{said}");
    assert!(said.contains("`docs` is in the file as a comment: `${file:…}` is read only"), "{said}");
    let value: Value = serde_saphyr::from_str(&written(home.path())).unwrap();
    let apps = value["apps"].as_object().unwrap();
    assert_eq!(apps.keys().collect::<Vec<_>>(), ["a-Wrote-nothing"]);
    assert_eq!(apps["a-Wrote-nothing"]["args"], json!(["\u{7f}\u{85}"]));
    succeeds(home.path(), &["add", "b", "--", "\u{7f}"]);
}

#[test]
fn nothing_is_overwritten_or_taken_without_an_answer() {
    let home = home(&[(".cursor/mcp.json", &json!({"mcpServers": {"a": {"command": "x"}}}))]);
    let output = run(home.path(), &["init"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("one server was found")
            && said(&output).contains("--yes")
            && said(&output).contains("--from"),
        "{}",
        said(&output)
    );
    assert!(!home.path().join("work/gatewright.yaml").exists());
    fs::write(home.path().join("work/gatewright.yaml"), "# mine\n").unwrap();
    for arguments in [&["init", "--yes"][..], &["init"]] {
        let output = run(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("--force") && written(home.path()) == "# mine\n", "{}", said(&output));
    }
    let output = run(home.path(), &["init", "--from", "cursr"]);
    assert!(said(&output).contains("did you mean `cursor`?"), "{}", said(&output));
}

#[test]
fn on_a_machine_without_clients_init_writes_a_sample_that_serves() {
    let home = home(&[]);
    let said = succeeds(home.path(), &["init"]);
    assert!(said.contains("sample app"), "{said}");
    succeeds(home.path(), &["check"]);
    let listed = succeeds(home.path(), &["tools", "--config", "gatewright.yaml", "list"]);
    assert!(listed.contains("crm:users_list"), "{listed}");
}

#[test]
fn add_keeps_comments_and_order_and_writes_only_what_check_accepts() {
    let home = home(&[]);
    let text = "# mine\napps:\n  crm: { builtin: crm } # sample\n  # more to come\n\n# the port\nhttp: { port: 4000 }\n";
    let file = home.path().join("work/gatewright.yaml");
    fs::write(&file, text).unwrap();
    let said =
        succeeds(home.path(), &["add", "files", "-e", "LEVEL=debug", "--", "npx", "-y", "some server", "."]);
    assert!(said.contains("has the app `files` now"), "{said}");
    let said = succeeds(
        home.path(),
        &["add", "web", "--url", "https://x.example/mcp", "--header", "Authorization: Bearer ${WEB_TOKEN}"],
    );
    assert!(said.contains("set the variable WEB_TOKEN"), "{said}");
    let expected = "# mine\napps:\n  crm: { builtin: crm } # sample\n  # more to come\n  files:\n    command: npx\n    args: [\"-y\", \"some server\", \".\"]\n    \
                    env:\n      LEVEL: \"debug\"\n  web:\n    url: \"https://x.example/mcp\"\n    headers:\n      Authorization: \"Bearer ${WEB_TOKEN}\"\n\n# the port\nhttp: { port: 4000 }\n";
    assert_eq!(written(home.path()), expected);
    for (arguments, says) in [
        (&["add", "crm", "--", "x"][..], "there is an app `crm` already"),
        (&["add", "no id", "--", "x"], "no id"),
        (&["add", "empty"], "gatewright add NAME -- npx"),
        (&["add", "bad", "--url", "ftp://x"], "`https://host/mcp`"),
        (&["add", "bad", "--openapi", "api.yaml"], "api.yaml: there is no such file"),
        (&["add", "bad", "--url", "https://x.example", "--header", "nothing"], "`Name: value`"),
    ] {
        let output = run(home.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(self::said(&output).contains(says), "{arguments:?}: {}", self::said(&output));
        assert_eq!(written(home.path()), expected);
    }
    let document = "openapi: 3.1.0\ninfo: { title: T, version: '1' }\nservers: [{ url: 'https://x.example' }]\npaths: {}\n";
    fs::write(home.path().join("work/api.yaml"), document).unwrap();
    succeeds(home.path(), &["add", "api", "--openapi", "api.yaml", "--header", "X-Key: ${API_KEY}"]);
    let text = written(home.path());
    assert!(
        text.contains("  api:\n    openapi: api.yaml\n    headers:\n      X-Key: \"${API_KEY}\"\n"),
        "{text}"
    );
    let said =
        succeeds(home.path(), &["add", "key", "--url", "https://x.example/mcp", "--header", "X-Key: k"]);
    assert!(said.contains("headers.X-Key is in the file as you typed it"), "{said}");
}

#[test]
fn tools_takes_the_configuration_of_the_folder_and_says_which_apps_it_starts() {
    let home = home(&[]);
    let listed = || {
        let output = run(home.path(), &["tools", "list"]);
        assert!(output.status.success(), "{}", said(&output));
        let apps = String::from_utf8_lossy(&output.stdout).contains("billing:invoices_list");
        (apps, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (has_billing, notes) = listed();
    assert!(has_billing && notes.contains("the sample apps of `gatewright demo`"), "{notes}");
    succeeds(home.path(), &["init"]);
    let (has_billing, notes) = listed();
    assert!(!has_billing && notes.contains("starting the apps of gatewright.yaml"), "{notes}");
}

#[test]
fn what_a_check_finds_is_not_logged_as_well() {
    let home = home(&[]);
    succeeds(home.path(), &["init"]);
    succeeds(home.path(), &["add", "gone", "--", "/nonexistent/server"]);
    let output = run(home.path(), &["check", "--live"]);
    let text = said(&output);
    assert!(output.status.code() == Some(2) && text.contains("apps.gone: is down"), "{text}");
    assert!(!text.contains("WARN"), "{text}");
}

#[test]
fn add_makes_a_configuration_where_there_is_none_and_leaves_a_bad_one_alone() {
    let home = home(&[]);
    succeeds(home.path(), &["add", "files", "--", "npx", "-y", "server"]);
    succeeds(home.path(), &["check"]);
    let file = home.path().join("work/gatewright.yaml");
    let bad = "http: { prot: 1 }\napps:\n  crm: { builtin: crm }\n";
    fs::write(&file, bad).unwrap();
    let output = run(home.path(), &["add", "files", "--", "x"]);
    assert!(said(&output).contains("did you mean `port`?"), "{}", said(&output));
    assert_eq!(fs::read_to_string(&file).unwrap(), bad);
    for (name, text) in [
        ("a.toml", "[apps.crm]\nbuiltin = \"crm\"\n"),
        ("a.json", "{\"apps\": {\"crm\": {\"builtin\": \"crm\"}}}"),
    ] {
        fs::write(home.path().join("work").join(name), text).unwrap();
        succeeds(home.path(), &["add", "files", "--config", name, "-e", "A=b", "--", "x", "y"]);
        succeeds(home.path(), &["check", "--config", name]);
    }
}

/// Texts of the blocks of a kind in a part of the quickstart.
fn blocks<'t>(text: &'t str, kind: &str) -> Vec<&'t str> {
    let fence = format!("```{kind}\n");
    let starts = text.split(fence.as_str()).skip(1);
    starts.map(|rest| rest.split_once("```").unwrap().0).collect()
}

#[test]
fn the_quickstart_taken_literally_ends_in_a_running_server() {
    let page = include_str!("../../../../docs/quickstart/platform.md");
    let (_, rest) = page.split_once("## 2. ").unwrap();
    let (second, rest) = rest.split_once("## 3. ").unwrap();
    let home = home(&[]);
    let mut gateway: Option<Gateway> = None;
    let mut ran = Vec::new();
    for line in blocks(second, "sh").into_iter().flat_map(str::lines) {
        let base = gateway.as_ref().map(|gateway| gateway.base.clone());
        let line = base.as_ref().map_or(line.to_owned(), |base| line.replace("http://127.0.0.1:3000", base));
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        ran.push(words[0].to_owned());
        match words[0] {
            "serve" => gateway = Some(Gateway::serve(home.path())),
            "health" => {
                words.extend(["--url", base.as_deref().unwrap()]);
                succeeds(home.path(), &words);
            }
            _ => drop(succeeds(home.path(), &words)),
        }
    }
    assert_eq!(ran, ["init", "serve", "health", "tools", "add", "add", "check"]);
    drop(gateway);
    let mut served = 0;
    // The last example is for a machine with a certificate.
    for text in blocks(rest, "yaml").into_iter().filter(|text| !text.contains("tls:")) {
        fs::write(home.path().join("work/gatewright.yaml"), text).unwrap();
        drop(Gateway::serve(home.path()));
        served += 1;
    }
    assert_eq!(served, 2);
}
