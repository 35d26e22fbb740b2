//! The command lines of `${command:LINE}`, which print a secret: `pass show x`, `op read …`.

use std::{
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest time of a command.
const LONGEST: Duration = Duration::from_secs(10);
/// Longest output, in bytes.
const LONGEST_OUTPUT: u64 = 64 << 10;

/// Runs a line in a shell, and returns what it prints. Errors contain nothing of its output.
///
/// # Errors
/// It fails, prints nothing, no UTF-8 or more than 64 KiB, or takes longer than 10 s; then its whole process group is ended.
pub(super) fn run(line: &str, folder: &Path) -> Result<String, String> {
    run_within(line, folder, LONGEST)
}

fn run_within(line: &str, folder: &Path, longest: Duration) -> Result<String, String> {
    let failed =
        |why: String| format!("the command of `${{command:…}}` {why}; run it in a shell to see what it does");
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut child = Command::new("/bin/sh")
        .args(["-c", line])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // It may repeat the secret.
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let group = Pid::from_child(&child);
    let (send, ended) = mpsc::channel();
    // Ends with the process, at the latest when its group is ended below.
    std::thread::spawn(move || {
        let _ = send.send(output(&mut child));
    });
    let (bytes, status) = match ended.recv_timeout(longest) {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => return Err(failed(format!("cannot be read: {error}"))),
        Err(_) => {
            let _ = kill_process_group(group, Signal::KILL);
            return Err(failed(format!("takes longer than {} s", longest.as_secs_f32())));
        }
    };
    if bytes.len() as u64 > LONGEST_OUTPUT {
        return Err(failed(format!("prints more than {LONGEST_OUTPUT} bytes")));
    }
    if !status.success() {
        return Err(failed(format!("fails ({status})")));
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => Err(failed("prints nothing".to_owned())),
        Ok(text) => Ok(text),
        Err(_) => Err(failed("prints no UTF-8".to_owned())),
    }
}

fn output(child: &mut Child) -> io::Result<(Vec<u8>, ExitStatus)> {
    let mut bytes = Vec::new();
    if let Some(out) = child.stdout.take() {
        out.take(LONGEST_OUTPUT + 1).read_to_end(&mut bytes)?;
    }
    Ok((bytes, child.wait()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_returned_and_failures_show_nothing_of_it() {
        let run = |line| run(line, Path::new(""));
        assert_eq!(run("printf 'a b'").unwrap(), "a b");
        for (line, says) in [
            ("echo hush; echo hush >&2; exit 3", "exit status: 3"),
            ("echo hush; kill -9 $$", "signal: 9"),
            ("true", "prints nothing"),
            ("printf 'hush\\377'", "no UTF-8"),
            ("yes hush", "more than 65536 bytes"),
            ("no-such-command-4711", "127"),
        ] {
            let problem = run(line).unwrap_err();
            assert!(problem.contains(says) && !problem.contains("hush"), "{line}: {problem}");
        }
    }

    #[test]
    fn a_command_that_hangs_is_ended_with_everything_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let line = "echo $$ > pid; sleep 600 & sleep 600";
        let problem = run_within(line, folder.path(), Duration::from_secs(1)).unwrap_err();
        assert!(problem.contains("longer than 1 s"), "{problem}");
        let pid: i32 = std::fs::read_to_string(folder.path().join("pid")).unwrap().trim().parse().unwrap();
        let group = Pid::from_raw(pid).unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while rustix::process::test_kill_process_group(group).is_ok() && !are_dead(pid) {
            assert!(std::time::Instant::now() < deadline, "processes are left");
            std::thread::yield_now();
        }
    }

    /// Returns true if nothing of the group runs: in a container without an init, orphans stay as zombies.
    fn are_dead(group: i32) -> bool {
        let listed = Command::new("ps").args(["-eo", "pgid=,stat="]).output();
        let Ok(listed) = listed else { return false };
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut own = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
        own.all(|(id, state)| id != group.to_string() || state.trim().starts_with('Z'))
    }
}
