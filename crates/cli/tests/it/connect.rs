//! `gatewright connect` and `disconnect`, for every client, with files as people have them and with hostile ones.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use gatewright_server::clients::{Client, FileFormat};
use tempfile::TempDir;

use crate::{support::gatewright, terminal::Terminal};

const URL: &str = "http://127.0.0.1:4711/mcp";

/// A home folder with a configuration in the folder `work`.
fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("work")).unwrap();
    let text = "http: { port: 4711 }\napps: { crm: { builtin: crm } }\n";
    fs::write(home.path().join("work/gatewright.yaml"), text).unwrap();
    home
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(gatewright());
    command.args(arguments).current_dir(home.join("work")).env_clear().env("HOME", home).stdin(Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn succeeds(home: &Path, arguments: &[&str]) -> String {
    let output = run(home, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

/// The file of a client on Linux.
fn file_of(home: &Path, client: Client) -> PathBuf {
    home.join(client.facts().places[0].shown().strip_prefix("~/").unwrap())
}

/// A file with another server, comments where the client allows them, and a layout of its own.
fn others(client: Client) -> String {
    let section = client.facts().section;
    match client.facts().format {
        FileFormat::Json => {
            format!(
                "{{\n\t// mine\n\t\"theme\": \"dark\",\n\t\"{section}\": {{\n\t\t\"other\": {{ \"command\": \"x\", \"env\": {{\"KEY\": \"hush\"}} }} /* keep */\n\t}},\n\t\"z\": [1,2 ]\n}}\n"
            )
        }
        FileFormat::Toml => format!(
            "model = \"m\" # mine\n\n[{section}.other]\ncommand = \"x\"\nenv = {{ KEY = \"hush\" }}\n"
        ),
    }
}

#[test]
fn a_user_at_a_terminal_sees_the_change_and_is_asked_before_the_file_of_a_client_is_written() {
    let home = home();
    let file = home.path().join(".cursor/mcp.json");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "{}").unwrap();
    for (answer, agreed) in [("", false), ("no", false), ("Y", true)] {
        let mut terminal = Terminal::start(home.path(), &home.path().join("work"), &["connect", "cursor"]);
        let shown = terminal.until("Change the file? [y/N]");
        assert!(shown.contains(".cursor/mcp.json") && shown.contains(URL), "{shown}");
        terminal.types(answer);
        let (code, text) = terminal.end();
        assert_eq!((code, text.contains("nothing was changed")), (0, !agreed), "{text}");
        assert_eq!(fs::read_to_string(&file).unwrap().contains(URL), agreed, "{answer}");
    }
}

#[test]
fn each_client_gets_the_entry_and_loses_it_again_and_every_other_byte_stays() {
    for client in Client::ALL {
        let (home, facts) = (home(), client.facts());
        let file = file_of(home.path(), client);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let before = others(client);
        fs::write(&file, &before).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        for way in [&["--url", URL][..], &["--stdio"]] {
            let said = succeeds(home.path(), &[&["connect", facts.id, "--yes"], way].concat());
            assert!(said.contains(facts.title) && !said.contains("hush"), "{said}");
            let after = fs::read_to_string(&file).unwrap();
            let expected = if way.len() == 2 {
                URL.to_owned()
            } else {
                format!("{}", home.path().join("work").canonicalize().unwrap().display())
            };
            assert!(after.contains(&expected) && after.contains("gatewright"), "{after}");
            let kept: Vec<&str> = before.lines().filter(|line| !line.contains("other\"")).collect();
            assert!(kept.iter().all(|line| after.contains(line)), "{after}");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            let copy = file
                .with_file_name(format!("{}.before-gatewright", file.file_name().unwrap().to_str().unwrap()));
            assert_eq!(fs::read_to_string(&copy).unwrap(), before);
            // A second time nothing changes.
            assert!(
                succeeds(home.path(), &[&["connect", facts.id, "--yes"], way].concat()).contains("already")
            );
            succeeds(home.path(), &["disconnect", facts.id, "--yes"]);
            assert_eq!(fs::read_to_string(&file).unwrap(), before, "{}", facts.id);
            assert!(!copy.exists());
        }
        assert!(succeeds(home.path(), &["disconnect", facts.id, "--yes"]).contains("has no server"));
    }
}

#[test]
fn a_client_without_a_file_gets_one_and_loses_it_again() {
    for client in Client::ALL {
        let home = home();
        let file = file_of(home.path(), client);
        succeeds(home.path(), &["connect", client.facts().id, "--yes"]);
        let text = fs::read_to_string(&file).unwrap();
        // Without --url, a running gateway at the address of the configuration, or for Claude Desktop a command.
        assert_eq!(text.contains(URL), client.takes_addresses(), "{text}");
        succeeds(home.path(), &["disconnect", client.facts().id, "--yes"]);
        assert!(!file.exists(), "{}", file.display());
    }
}

#[test]
fn changes_by_others_since_the_connection_stay_when_it_is_taken_out() {
    let home = home();
    let file = file_of(home.path(), Client::Cursor);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, others(Client::Cursor)).unwrap();
    succeeds(home.path(), &["connect", "cursor", "--yes"]);
    let changed = fs::read_to_string(&file).unwrap().replace("dark", "light");
    fs::write(&file, changed).unwrap();
    succeeds(home.path(), &["connect", "cursor", "--yes", "--url", "https://tools.example.com/mcp"]);
    assert!(fs::read_to_string(&file).unwrap().contains("https://tools.example.com/mcp"));
    let said = succeeds(home.path(), &["disconnect", "cursor", "--yes"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), others(Client::Cursor).replace("dark", "light"));
    assert!(said.contains("mcp.json.before-gatewright"), "{said}");
}

#[test]
fn files_that_cannot_be_changed_safely_stay_as_they_are_and_the_error_says_what_to_do() {
    let cases: [(&str, &str, &str); 5] = [
        ("broken", "{\"token\": \"hush\",\n \"mcpServers\": {", "it is not JSON: line 2"),
        ("odd", "{\"mcpServers\": [\"hush\"]}", "`mcpServers` is there, and is no object"),
        ("link", "{}", "name that file instead"),
        ("read-only", "{}", "chmod u+w"),
        ("large", "", "longer than 8388608 bytes"),
    ];
    for (kind, text, says) in cases {
        let home = home();
        let file = file_of(home.path(), Client::Cursor);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let large = || format!("{{\"mcpServers\": {{}}, \"x\": \"{}\"}}", "hush".repeat(10 << 18));
        let text = if kind == "large" { large() } else { text.to_owned() };
        match kind {
            "link" => {
                fs::write(home.path().join("dotfile"), &text).unwrap();
                symlink("../dotfile", &file).unwrap();
            }
            _ => fs::write(&file, &text).unwrap(),
        }
        if kind == "read-only" {
            fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        }
        let output = run(home.path(), &["connect", "cursor", "--yes"]);
        let message = said(&output);
        assert_eq!(output.status.code(), Some(2), "{kind}: {message}");
        assert!(message.contains(says) && !message.contains("hush"), "{kind}: {message}");
        assert!(message.contains("to add it by hand") && message.contains(URL), "{kind}: {message}");
        assert!(fs::read_to_string(&file).unwrap() == text, "{kind}");
        assert_eq!(fs::symlink_metadata(&file).unwrap().is_symlink(), kind == "link");
    }
}

#[test]
fn nothing_is_changed_without_an_answer_and_print_shows_the_change() {
    let home = home();
    let output = run(home.path(), &["connect", "cursor"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--yes"), "{}", said(&output));
    let printed = succeeds(home.path(), &["connect", "cursor", "--print"]);
    assert!(printed.contains(&format!("+ \"gatewright\": {{\n+   \"url\": \"{URL}\"\n+ }}")), "{printed}");
    assert!(!file_of(home.path(), Client::Cursor).exists());
    fs::remove_file(home.path().join("work/gatewright.yaml")).unwrap();
    let output = run(home.path(), &["connect", "cursor", "--stdio", "--yes"]);
    assert!(said(&output).contains("`gatewright init`"), "{}", said(&output));
}

#[test]
fn what_others_wrote_into_the_file_is_not_printed_wherever_it_stands() {
    let old =
        r#""gatewright":{"url":"https://x.example/?key=hush","headers":{"Authorization":"Bearer hush"}}"#;
    let other = r#""gh":{"command":"x","env":{"GITHUB_TOKEN":"hush"}}"#;
    let large = format!("{{\"x\":[{}0],\"mcpServers\":{{}}}}", "{\"a\":\"hush\"},".repeat(100_000));
    for text in [
        r#"{"oauthAccount":{"accessToken":"hush"},"mcpServers":{}}"#.to_owned(),
        format!("{{\n  \"mcpServers\": {{\n    {other}}}\n}}"),
        format!("{{\"mcpServers\":{{{old},{other}}}}}"),
        format!("{{\n\"mcpServers\": {{\n{old},\n{other} // hush\n}}, \"y\": \"hush\"}}\n"),
        large,
    ] {
        let home = home();
        let file = file_of(home.path(), Client::Cursor);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &text).unwrap();
        let start = &text[..text.len().min(300)];
        for arguments in [
            &["connect", "cursor", "--print"][..],
            &["connect", "cursor", "--yes"],
            &["disconnect", "cursor", "--print"],
            &["disconnect", "cursor", "--yes"],
        ] {
            let said = succeeds(home.path(), arguments);
            assert!(said.contains("\"gatewright\": {") && said.contains("\"url\""), "{start}: {said}");
            assert!(!said.contains("hush") && said.len() < 4_000, "{start}: {said}");
        }
        assert!(fs::read_to_string(&file).unwrap() == text, "{start}");
    }
    let home = home();
    let file = file_of(home.path(), Client::Codex);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let old = "[mcp_servers.gatewright]\nurl = \"x\"\nhttp_headers = { A = \"hush\" } # hush\n";
    fs::write(&file, format!("a = \"hush\"\n{old}\n[mcp_servers.b.env]\nKEY = \"hush\" # hush")).unwrap();
    for arguments in [["connect", "codex", "--yes"], ["disconnect", "codex", "--yes"]] {
        let said = succeeds(home.path(), &arguments);
        assert!(said.contains("[mcp_servers.gatewright]") && !said.contains("hush"), "{said}");
        assert!(said.contains("http_headers = { \"A\" = \"…\" }"), "{said}");
    }
}

#[test]
fn folders_of_clients_follow_their_variables() {
    let home = home();
    let folder = home.path().join("elsewhere");
    for (client, variable, file) in [
        ("codex", "CODEX_HOME", "config.toml"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
    ] {
        let mut command = Command::new(gatewright());
        command
            .args(["connect", client, "--yes"])
            .env_clear()
            .env("HOME", home.path())
            .env(variable, &folder);
        assert!(command.output().unwrap().status.success());
        assert!(folder.join(file).exists(), "{client}");
    }
    let named = home.path().join("project/.mcp.json");
    succeeds(home.path(), &["connect", "claude-code", "--yes", "--file", named.to_str().unwrap()]);
    assert!(named.exists() && !home.path().join(".claude.json").exists());
}
