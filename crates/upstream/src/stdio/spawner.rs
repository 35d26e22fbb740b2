//! The thread that starts every child. It lives as long as the process, because a child's parent-death signal is tied
//! to the thread that forked it, and threads of an async runtime may end earlier.

use std::{
    io,
    sync::{OnceLock, mpsc},
};

use tokio::{
    process::{Child, Command},
    runtime::Handle,
    sync::oneshot,
};

type Job = Box<dyn FnOnce() + Send>;

fn jobs() -> Option<&'static mpsc::Sender<Job>> {
    static JOBS: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();
    JOBS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Job>();
        let work = move || receiver.into_iter().for_each(|job| job());
        std::thread::Builder::new().name("upstream-spawner".to_owned()).spawn(work).ok()?;
        Some(sender)
    })
    .as_ref()
}

/// Has the kernel end the child, or what it starts, where memory runs out, and not this process, on which all others depend. Nothing depends on it
/// (`proc_pid_oom_score_adj(5)`; whoever runs the gateway may have set more).
fn end_before_us(child: &Child) {
    const MORE_THAN_US: &str = "500";
    if let Some(id) = child.id().filter(|_| cfg!(target_os = "linux")) {
        let _ = std::fs::write(format!("/proc/{id}/oom_score_adj"), MORE_THAN_US);
    }
}

/// Starts `command` on the long-lived thread, for the runtime of the caller.
pub(super) async fn spawn(mut command: Command) -> io::Result<Child> {
    let handle = Handle::current();
    let (sender, started) = oneshot::channel();
    let job: Job = Box::new(move || {
        let _runtime = handle.enter();
        let child = command.spawn();
        if let Ok(child) = &child {
            end_before_us(child);
        }
        // Nobody waits any more: the child is dropped, and killed by that.
        let _ = sender.send(child);
    });
    let gone = || io::Error::other("the thread that starts programs is gone");
    jobs().ok_or_else(gone)?.send(job).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}
