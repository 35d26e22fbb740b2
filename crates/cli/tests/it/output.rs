//! Standard output that nobody reads to its end, as in `gatewright tools list | head -1`.

use std::{
    io::pipe,
    process::{Command, Stdio},
};

use crate::support::gatewright;

#[test]
fn commands_end_quietly_when_nobody_reads_their_output() {
    let commands: [&[&str]; 9] = [
        &["tools", "list"],
        &["tools", "--json", "list"],
        &["tools", "search", "invoices", "--verbose"],
        &["tools", "call", "crm:users_list", "{}"],
        &["schema"],
        &["reference", "config"],
        &["man"],
        &["completions", "bash"],
        &["token"],
    ];
    for command in commands {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let output =
            Command::new(gatewright()).args(command).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{command:?}: {:?} {stderr}", output.status);
        assert!(!stderr.contains("panic") && !stderr.contains("error"), "{command:?}: {stderr}");
    }
}

#[test]
fn an_error_that_nobody_reads_keeps_its_exit_code() {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let status =
        Command::new(gatewright()).args(["check", "--config", "/nowhere.yaml"]).stderr(writer).status();
    assert_eq!(status.unwrap().code(), Some(2));
}
