//! The lines that `gatewright demo` prints work when they are pasted, with and without a login.

use std::{
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use crate::support::gatewright;

struct Demo {
    child: Child,
    url: String,
    console: String,
    /// The lines that a person would paste, up to those that need another program.
    lines: String,
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Demo {
    fn start(arguments: &[&str]) -> Self {
        Self::start_from(gatewright().as_ref(), arguments)
    }

    fn start_from(program: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(["demo", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = printed.find(|line| line.contains("MCP endpoint")).unwrap();
        let url = line.split_whitespace().last().unwrap().to_owned();
        let console = printed.find(|line| line.contains("Console")).unwrap();
        let console = console.split_whitespace().last().unwrap().to_owned();
        let tour = printed.skip_while(|line| !line.starts_with("Paste these lines")).skip(1);
        let lines: Vec<String> = tour.take_while(|line| !line.contains("# Connect Claude Code")).collect();
        Self { child, url, console, lines: lines.join("\n") }
    }

    /// Pastes `lines` into a shell that knows `gatewright`.
    fn paste(&self, lines: &str) -> Output {
        let folder = tempfile::tempdir().unwrap();
        symlink(gatewright(), folder.path().join("gatewright")).unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.path().display());
        Command::new("sh")
            .args(["-e", "-c", lines])
            .env("PATH", path)
            .env_remove("GATEWRIGHT_TOKEN")
            .output()
            .unwrap()
    }
}

fn went_well(output: &Output) {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}\n{complained}");
    // The search, the schema, the call, the plan, and what curl prints.
    for part in ["billing:", "\"inputSchema\"", "\"items\"", "\"tickets\"", "\"tools\":["] {
        assert!(said.contains(part), "no {part} in {said}\n{complained}");
    }
}

#[test]
fn the_tour_works_when_it_is_pasted() {
    let demo = Demo::start(&[]);
    went_well(&demo.paste(&demo.lines));
}

#[tokio::test]
async fn the_demo_has_a_console_and_prints_its_address() {
    let demo = Demo::start(&[]);
    let page = reqwest::get(&demo.console).await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("gatewright-demo"));
}

#[test]
fn the_tour_of_a_server_that_wants_a_login_gets_a_token_first() {
    let demo = Demo::start(&["--auth"]);
    assert!(demo.lines.contains("export GATEWRIGHT_TOKEN="), "{}", demo.lines);
    went_well(&demo.paste(&demo.lines));
}

#[test]
fn a_server_that_wants_a_token_is_told_from_one_that_is_not_there() {
    let demo = Demo::start(&["--auth"]);
    let tools =
        |arguments: &str| demo.paste(&format!("gatewright tools list --url {} {arguments}", demo.url));
    let complains = |arguments: &str, what: &str| {
        let output = tools(arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && text.contains(what), "{arguments}: {text}");
        assert!(!text.contains("not-the-token"), "a secret in {text}");
    };
    complains("", "sign in with `gatewright login");
    complains("--token not-the-token", "does not accept the access token");
    complains("--token 'not-the-token x'", "characters that are not allowed in tokens");
    complains("--header not-the-token", "`Name: value`");
    let (token, _) = demo.lines.trim_start().split_once("\n\n").unwrap();
    let with = |rest: &str| {
        demo.paste(&format!(
            "{token}\nTOKEN=$GATEWRIGHT_TOKEN; unset GATEWRIGHT_TOKEN\ngatewright tools list --url {} {rest}",
            demo.url
        ))
    };
    for rest in ["--token \"$TOKEN\"", "--header \"Authorization: Bearer $TOKEN\""] {
        let output = with(rest);
        assert!(output.status.success(), "{rest}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("codecall:search"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_whose_file_was_replaced_while_it_runs_still_starts_workers() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("gatewright");
    std::fs::copy(gatewright(), &program).unwrap();
    let demo = Demo::start_from(&program, &[]);
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "another version").unwrap();
    // Every thread has children of its own.
    let threads = std::fs::read_dir(format!("/proc/{}/task", demo.child.id())).unwrap();
    let children = threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("children")));
    let workers = children.map(Result::unwrap).collect::<Vec<_>>().join(" ");
    assert!(!workers.trim().is_empty());
    assert!(Command::new("kill").arg("-9").args(workers.split_whitespace()).status().unwrap().success());
    let output = demo.paste(&format!("echo 'return 40 + 2' | gatewright tools run --url {} -", demo.url));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("\"result\": 42"), "{said} {}", String::from_utf8_lossy(&output.stderr));
}
