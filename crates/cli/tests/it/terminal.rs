//! The program at a terminal, for tests of what it asks. The terminal is a pair of Python's module `pty`.

use std::{
    io::{Read as _, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::support::gatewright;

/// Runs its arguments at a terminal of their own: what is written to it is typed, what is shown comes out.
const TERMINAL: &str = "import os, pty, sys\nsys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/// A program that somebody sits at.
pub struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    /// Shown, and not yet looked at.
    unread: String,
}

impl Terminal {
    /// Starts the program for a user of the folder `home`, in the folder `here`.
    pub fn start(home: &Path, here: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", TERMINAL]).arg(gatewright()).args(arguments).current_dir(here);
        command.env("HOME", home).env_remove("XDG_CONFIG_HOME").env_remove("GATEWRIGHT_TOKEN");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keyboard, screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, keyboard, screen, unread: String::new() }
    }

    /// Reads on until `text` is shown; gives everything up to its end.
    pub fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.unread.find(text) {
                return self.unread.drain(..at + text.len()).collect();
            }
            assert!(self.read(), "it ended without `{text}`: {}", self.unread);
        }
    }

    fn read(&mut self) -> bool {
        let mut part = [0; 4096];
        let count = self.screen.read(&mut part).unwrap();
        self.unread.push_str(&String::from_utf8_lossy(&part[..count]));
        count > 0
    }

    /// Types a line.
    pub fn types(&mut self, line: &str) {
        self.keyboard.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.keyboard.flush().unwrap();
    }

    /// Exit code, and the rest of what is shown.
    pub fn end(mut self) -> (i32, String) {
        while self.read() {}
        (self.child.wait().unwrap().code().unwrap(), std::mem::take(&mut self.unread))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
