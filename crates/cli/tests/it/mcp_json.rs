//! Files of clients served as they are, secrets from files and commands, and the configuration of the current folder.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

use crate::support::gatewright;

/// A folder with files, given by name and text.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Runs the binary in a folder, with its path in `GATEWRIGHT`.
fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(gatewright());
    command.args(arguments).current_dir(folder).env("GATEWRIGHT", gatewright()).stdin(Stdio::null());
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server that starts only if it is given a variable.
const INNER: &str =
    "info: { name: \"${TOKEN}\" }\ncodecall: { enabled: false }\napps: { crm: { builtin: crm } }\n";

#[test]
fn a_file_of_a_client_with_comments_variables_and_an_env_file_is_served_as_it_is() {
    let folder = folder(&[
        ("inner.yaml", INNER),
        (".env", "# mine\nexport TOKEN='a # b'\n"),
        (
            ".vscode/mcp.json",
            r#"{
              // of the editor
              "servers": {
                "from file": {
                  "type": "stdio", "command": "${env:GATEWRIGHT}", "envFile": "${workspaceFolder}/.env",
                  "args": ["serve", "${FLAG:---stdio}", "--config", "${workspaceFolder}${/}inner.yaml"], /* done */
                },
                "from-variable": {
                  "command": "${GATEWRIGHT}", "args": ["serve", "--stdio", "--config", "inner.yaml"],
                  "env": {"TOKEN": "${env:NOT_SET_ANYWHERE:-x}"}, "gallery": true, "disabledTools": ["x"],
                },
                "off": {"command": "${NOT_SET_ANYWHERE}", "disabled": true},
              },
            }"#,
        ),
    ]);
    let output = run(folder.path(), &["tools", "--mcp-config", ".vscode/mcp.json", "list"]);
    let listed = String::from_utf8_lossy(&output.stdout);
    for tool in ["from-file:crm:users_list", "from-variable:crm:users_list"] {
        assert!(listed.contains(tool), "{tool}: {listed} {}", stderr(&output));
    }
    assert!(stderr(&output).contains("gallery, disabledTools"), "{}", stderr(&output));
}

#[test]
fn variables_that_a_gateway_cannot_have_are_refused_with_their_line_and_what_to_write_instead() {
    let folder = folder(&[(
        "mcp.json",
        "{\"inputs\": [{\"id\": \"github-token\"}], \"servers\": {\n\"a\": {\"command\": \"x\", \"env\": {\"T\":\n\"${input:github-token}\"}},\n\
         \"b\": {\"command\": \"x\",\n\"args\": [\"${command:echo hush}\"]},\n\"c\": {\"url\":\n\"${NOT_SET_ANYWHERE}\"},\n\
         \"d\": {\"command\": \"x\",\n\"envFile\": \"gone.env\"},\n\"e\": {\"url\": \"https://x.example\",\n\"headers\": {\"X\": \"${file:mcp.json}\"}}}}",
    )]);
    let output = run(folder.path(), &["serve", "--stdio", "--mcp-config", "mcp.json"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    for expected in [
        "line 2: servers.a.env.T: `${input:github-token}` asks the person",
        "write `${GITHUB_TOKEN}`",
        "line 5: servers.b.args",
        "`${command:…}` runs only in the configuration of the gateway",
        "line 6: servers.c.url: environment variable NOT_SET_ANYWHERE is not set",
        "line 9: servers.d.envFile: the file gone.env of `envFile` cannot be used: No such file",
        "line 11: servers.e.headers.X: `${file:…}` is read only in the configuration of the gateway",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn secrets_of_a_configuration_come_from_files_and_commands_and_are_not_shown_in_errors() {
    let good = "apps:\n  web:\n    url: https://example.com/mcp\n    auth: { type: bearer, token: \"${file:token}\" }\n    \
                headers: { x-key: \"${command:cat token}\" }\n";
    let bad =
        "toolNames: \"${file:token}\"\npageSize: \"${command:cat token}\"\napps: { crm: { builtin: crm } }\n";
    let gone = "logging: { level: \"${file:gone}\" }\napps: { crm: { builtin: crm, scopes: [\"${command:cat token; false}\"] } }\n";
    let folder = folder(&[
        ("good/gatewright.yaml", good),
        ("bad/gatewright.yaml", bad),
        ("gone/gatewright.yaml", gone),
        ("good/token", "hush-4f1c9d\n"),
        ("bad/token", "hush-4f1c9d\n"),
        ("gone/token", "hush-4f1c9d\n"),
    ]);
    // Relative paths are those of the configuration, not of the process.
    let output = run(folder.path(), &["check", "--config", "good/gatewright.yaml"]);
    assert!(output.status.success(), "{output:?}");
    let said = |name: &str| {
        let output = run(&folder.path().join(name), &["check"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!said.contains("hush"), "{said}");
        said
    };
    let bad = said("bad");
    assert!(bad.contains("the value comes from file:token"), "{bad}");
    assert!(bad.contains("the value comes from command:…"), "{bad}");
    let gone = said("gone");
    assert!(gone.contains("the file gone of `${file:…}` cannot be used: No such file"), "{gone}");
    assert!(gone.contains("the command of `${command:…}` fails (exit status: 1)"), "{gone}");
}

#[test]
fn serve_and_check_take_the_configuration_of_the_folder_and_say_so_or_name_init() {
    let with = folder(&[("gatewright.yaml", "apps: { crm: { builtin: crm } }\n")]);
    let output = run(with.path(), &["serve", "--stdio"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        stderr(&output).contains("serving the configuration gatewright.yaml of this folder"),
        "{output:?}"
    );
    assert!(run(with.path(), &["check"]).status.success());
    let without = folder(&[]);
    for command in [&["serve"][..], &["serve", "--stdio"], &["check"]] {
        let output = run(without.path(), command);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(stderr(&output).contains("`gatewright init`"), "{output:?}");
    }
}
