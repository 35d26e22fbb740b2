//! Leases on a shared server.
//!
//! A lease is the open end of a named pipe, which the system closes with its process, however that ends. The keeper, a shell, reads the
//! other end: it sees the end of the input when no lease is left.

use std::{
    fs::File,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use rustix::fs::OFlags;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

/// Time between the end of the last lease and the end of the server, in seconds.
const GRACE_SECS: u32 = 5;

/// Ends a server when no lease is left: SIGTERM to its group, later what `$6` says.
///
/// A lease writes a line when it begins, so that one which began and ended during the grace period is seen as well. Before the end the pipe
/// is unlinked: whoever opened it until then has written or will, and keeps the server; nobody can open it later.
const KEEPER: &str = r#"
group=$1 lease=$2 dir=$3 grace=$4 tenths=$5 kill=$6
exec 3<"$lease" || exit 1
echo ready
exec >/dev/null 2>&1
cat <&3
while sleep "$grace"; do
    if ! read -r line <&3; then
        rm -f "$lease"
        if read -r line <&3; then cat <&3; fi
        break
    fi
    cat <&3
done
kill -s TERM -- "-$group"
while kill -s 0 -- "-$group" && [ "$tenths" -gt 0 ]; do
    tenths=$((tenths - 1))
    sleep 0.1
done
eval "$kill"
rm -rf "$dir"
"#;

/// A lease on a shared server.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    _pipe: File,
}

impl Lease {
    /// A lease on the server of a pipe; `None` if it has no keeper any more.
    pub(super) fn acquire(path: &Path) -> Option<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut pipe = File::options().write(true).custom_flags(flags).open(path).ok()?;
        // A full pipe has lines enough.
        let written = pipe.write_all(b"lease\n");
        let is_full = written.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        (written.is_ok() || is_full).then(|| Self { path: path.to_owned(), _pipe: pipe })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes a named pipe for this user.
pub(super) async fn make_pipe(path: &Path) -> std::io::Result<()> {
    let made = Command::new("mkfifo").arg("-m").arg("600").arg(path).status().await?;
    match made.success() {
        true => Ok(()),
        false => Err(std::io::Error::other(format!("mkfifo failed: {made}"))),
    }
}

/// Starts the keeper of a server, with a first lease. It removes `dir` at the end. `kill` are shell commands that leave nothing of the server.
///
/// # Errors
/// The keeper does not start.
pub(super) async fn keep(
    dir: &Path,
    group: u32,
    kill: &str,
    stop_timeout: Duration,
) -> std::io::Result<Lease> {
    let path = dir.join("lease");
    make_pipe(&path).await?;
    // Open at both ends, so that neither the keeper nor the lease waits for the other.
    let both_ends = File::options().read(true).write(true).open(&path)?;
    let tenths = stop_timeout.as_millis().div_ceil(100);
    let mut keeper = Command::new("/bin/sh")
        .args(["-c", KEEPER, "keeper"])
        .arg(group.to_string())
        .arg(&path)
        .arg(dir)
        .args([&GRACE_SECS.to_string(), &tenths.to_string(), kill])
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut line = String::new();
    if let Some(output) = keeper.stdout.take() {
        BufReader::new(output).read_line(&mut line).await?;
    }
    let lease = Lease::acquire(&path).filter(|_| line == "ready\n");
    drop(both_ends);
    lease.ok_or_else(|| std::io::Error::other("the keeper of the server does not run"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    /// Waits until the process has ended, which is our child.
    async fn ended(mut server: std::process::Child) {
        let waiting = tokio::task::spawn_blocking(move || server.wait());
        tokio::time::timeout(Duration::from_secs(120), waiting).await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_server_runs_while_a_lease_is_held_and_ends_after_the_last_one() {
        let dir = tempfile::tempdir().unwrap().keep();
        let mut server = std::process::Command::new("sleep").arg("3600").process_group(0).spawn().unwrap();
        let first =
            keep(&dir, server.id(), &format!("kill -s KILL -- -{}", server.id()), Duration::from_secs(5))
                .await
                .unwrap();
        let second = Lease::acquire(first.path()).unwrap();
        drop(first);
        // A third begins and ends: nothing changes for the second.
        drop(Lease::acquire(second.path()).unwrap());
        assert!(server.try_wait().unwrap().is_none());
        let path = second.path().to_owned();
        drop(second);
        ended(server).await;
        assert!(Lease::acquire(&path).is_none(), "its pipe is gone");
    }
}
