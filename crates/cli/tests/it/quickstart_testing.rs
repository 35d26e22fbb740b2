//! The quickstart for testers, taken literally: every command of the page is run in its order, on ports of this test.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::support::gatewright;

const PAGE: &str = include_str!("../../../../docs/quickstart/testing.md");

/// Texts of the blocks of a kind, in their order.
fn blocks(kind: &str) -> Vec<&'static str> {
    let opening = format!("```{kind}\n");
    PAGE.split(opening.as_str()).skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

/// A folder in which `gatewright` is found.
struct Shell(TempDir);

impl Shell {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        symlink(gatewright(), folder.path().join("gatewright")).unwrap();
        Self(folder)
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, lines: &str) -> Command {
        let mut command = Command::new("sh");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.folder().display());
        command.args(["-e", "-c", lines]).env("PATH", path).current_dir(self.folder());
        command
    }

    /// Standard output and standard error of lines that succeed, or fail.
    fn run(&self, lines: &str, succeeds: bool) -> String {
        let output = self.command(lines).output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.success(), succeeds, "{lines}\n{text}");
        text
    }

    /// Starts a server that goes on, and waits for the line of its output that has `mark`.
    fn leave_running(&self, line: &str, mark: &str) -> (Running, String) {
        let mut child = self
            .command(&format!("exec {line}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let running = Running(child);
        let mut lines = Box::new(lines);
        let found = lines.find(|line| line.contains(mark)).unwrap();
        // The rest is read, so that the server can go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        (running, found)
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn last_word(line: &str) -> &str {
    line.split_whitespace().last().unwrap()
}

#[test]
fn the_quickstart_for_testers_taken_literally_passes_its_tests_and_issues_tokens() {
    let (commands, files) = (blocks("sh"), blocks("yaml"));
    let [demo, by_hand, suite, mock, tokens] = commands[..] else { panic!("{commands:#?}") };
    let shell = Shell::new();
    let (_demo, line) = shell.leave_running(&demo.replace("demo", "demo --port 0"), "MCP endpoint");
    let url = last_word(&line).to_owned();
    let here = |text: &str| text.replace("http://127.0.0.1:3000/mcp", &url);

    let text = shell.run(&here(by_hand), true);
    for part in ["crm:users_list", "inputSchema", "ada.lindqvist@northwind.example"] {
        assert!(text.contains(part), "no {part} in {text}");
    }

    let [file] = files[..] else { panic!("{files:#?}") };
    fs::write(shell.folder().join("demo.suite.yaml"), here(file)).unwrap();
    let text = shell.run(suite, true);
    assert!(text.contains("3 passed"), "{text}");
    fs::write(shell.folder().join("demo.suite.yaml"), here(file).replace("24", "25")).unwrap();
    let text = shell.run(suite, false);
    for part in ["counts the users", "demo.suite.yaml:", "25", "24", "tools/call"] {
        assert!(text.contains(part), "no {part} in {text}");
    }

    let (_mock, line) = shell.leave_running(&mock.replace("9000", "0"), "http://");
    let issuer = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let text = shell.run(&tokens.replace("http://127.0.0.1:9000", issuer), true);
    let tokens: Vec<&str> = text.lines().filter(|line| line.split('.').count() == 3).collect();
    assert!(tokens.len() == 2 && tokens[0] != tokens[1], "{text}");
}
