//! Giving up a process's capabilities, and the engine's calls that have no safe wrapper. The engine's memory is in `heap`.
//!
//! Order matters. `enter` runs on the main thread before any other exists, so that threads inherit what it does; `lock` runs on
//! the thread that serves, last, because afterwards no file can be opened and no thread started.
#![expect(
    unsafe_code,
    reason = "system calls and calls of the engine without a safe wrapper; each block says why it holds"
)]

use std::{
    ffi::CStr,
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::UnixStream,
    },
};

use rquickjs::{Ctx, Value, qjs};
use serde::{Deserialize, Serialize};

/// Which walls stand around a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxReport {
    /// Only the system calls a running script needs are allowed; any other kills the worker.
    pub seccomp: bool,
    /// The file system and the network are out of reach (Landlock).
    pub landlock: bool,
    /// Address space, files, processes and core dumps are limited.
    pub rlimits: bool,
    /// What is missing and why, for a person.
    pub missing: Vec<String>,
}

impl SandboxReport {
    /// Whether every wall stands.
    pub fn is_complete(&self) -> bool {
        self.seccomp && self.landlock && self.rlimits
    }
}

/// What the pool told the process to do.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    parent: u32,
    address_space: u64,
    early: SandboxReport,
}

impl Plan {
    /// Arguments for a worker of the process `parent` that may map `address_space` bytes.
    pub(crate) fn to_args(parent: u32, address_space: u64) -> [String; 2] {
        [parent.to_string(), address_space.to_string()]
    }

    /// Reads what [`Plan::to_args`] wrote.
    pub(crate) fn from_args(args: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut args = args.into_iter();
        let parent = args.next()?.parse().ok()?;
        let address_space = args.next()?.parse().ok()?;
        Some(Self { parent, address_space, early: SandboxReport::default() })
    }
}

/// Ties the process to its parent, drops inherited descriptors, limits it, closes the file system; gives the socket found on
/// standard input.
///
/// # Errors
/// The parent is gone already, or standard input is not usable.
pub(crate) fn enter(plan: &mut Plan) -> io::Result<UnixStream> {
    #[cfg(target_os = "linux")]
    linux::enter(plan)?;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = plan.parent;
        plan.early.missing.push("this system has no worker sandbox".to_owned());
    }
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Reads what has arrived on `stream`, without waiting.
///
/// # Errors
/// `WouldBlock` when nothing has; otherwise what the system says.
pub(crate) fn receive_now(stream: &UnixStream, room: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the descriptor is open as long as `stream` lives, and the call writes at most `room.len()` bytes into `room`.
    let read =
        unsafe { libc::recv(stream.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), libc::MSG_DONTWAIT) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// Takes the last capabilities away: afterwards the process can compute, and read and write its socket.
pub(crate) fn lock(plan: &Plan) -> SandboxReport {
    #[allow(unused_mut, reason = "changed on Linux only")]
    let mut report = plan.early.clone();
    #[cfg(target_os = "linux")]
    linux::lock(&mut report, plan.address_space);
    report
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, apply_filter_all_threads,
    };

    use super::{Plan, SandboxReport};

    pub(super) fn enter(plan: &mut Plan) -> io::Result<()> {
        // SAFETY: `prctl` with these options takes plain numbers and touches no memory of ours.
        let tied = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
        };
        if !tied {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the signal was asked for.
        if std::os::unix::process::parent_id() != plan.parent {
            return Err(io::ErrorKind::NotConnected.into());
        }
        // SAFETY: closes descriptors 3 and up. Nothing in this process owns one yet: this runs first in `main`.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        utc();
        one_arena();
        match confine() {
            Ok(true) => plan.early.landlock = true,
            Ok(false) => {
                plan.early.missing.push("Landlock: this kernel does not enforce all of it".to_owned())
            }
            Err(error) => plan.early.missing.push(format!("Landlock: {error}")),
        }
        Ok(())
    }

    /// Fixes local time to UTC while the time-zone files are still readable: the engine asks for it later.
    #[expect(
        clippy::disallowed_methods,
        reason = "the engine's time zone has no other way in; the variable is gone again at once"
    )]
    fn utc() {
        unsafe extern "C" {
            fn tzset();
        }
        // SAFETY: this is the only thread of the process, so nothing reads the environment at the same time.
        unsafe {
            std::env::set_var("TZ", "UTC0");
            tzset();
            std::env::remove_var("TZ");
        }
    }

    /// One heap for all threads that grows in large steps: realms come and go, and a system call per page would cost more than
    /// they do.
    fn one_arena() {
        // SAFETY: plain numbers, before any other thread exists.
        unsafe {
            #[cfg(target_env = "gnu")]
            {
                libc::mallopt(libc::M_ARENA_MAX, 1);
                libc::mallopt(libc::M_TOP_PAD, 512 * 1024);
                libc::mallopt(libc::M_TRIM_THRESHOLD, 1024 * 1024);
            }
        }
    }

    /// No file, no TCP port, no abstract socket, no signal to other processes.
    fn confine() -> Result<bool, landlock::RulesetError> {
        let abi = ABI::V6;
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?
            .create()?
            .restrict_self()?;
        Ok(status.ruleset == RulesetStatus::FullyEnforced)
    }

    pub(super) fn lock(report: &mut SandboxReport, address_space: u64) {
        // Files after Landlock's ruleset, which needs a descriptor of its own.
        let limits = [
            (libc::RLIMIT_AS, address_space),
            (libc::RLIMIT_CORE, 0),
            (libc::RLIMIT_FSIZE, 0),
            (libc::RLIMIT_NPROC, 0),
            (libc::RLIMIT_NOFILE, 4),
        ];
        report.rlimits = limits.into_iter().all(|(resource, value)| {
            let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
            // SAFETY: `limit` lives through the call, which only reads it.
            unsafe { libc::setrlimit(resource, &limit) == 0 }
        });
        if !report.rlimits {
            report.missing.push(format!("rlimits: {}", io::Error::last_os_error()));
        }
        match filter().and_then(|filter| apply_filter_all_threads(&filter).map_err(|error| error.to_string()))
        {
            Ok(()) => report.seccomp = true,
            Err(error) => report.missing.push(format!("seccomp: {error}")),
        }
    }

    /// What a running script needs: its socket, memory, time, and the way out (abort and faults included, so that they are
    /// reported as what they are).
    const ALLOWED: &[libc::c_long] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_recvfrom,
        libc::SYS_sendto,
        libc::SYS_ppoll,
        libc::SYS_futex,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_restart_syscall,
        libc::SYS_rt_sigreturn,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigaction,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_clock_gettime,
        // An allocator yields the processor with a sleep of no time.
        libc::SYS_clock_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_close,
    ];

    fn filter() -> Result<BpfProgram, String> {
        let text = |error: seccompiler::BackendError| error.to_string();
        // Memory that can be executed is never mapped.
        let not_executable = || -> Result<Vec<SeccompRule>, String> {
            let exec = libc::PROT_EXEC as u64;
            let condition =
                SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(exec), 0)
                    .map_err(text)?;
            Ok(vec![SeccompRule::new(vec![condition]).map_err(text)?])
        };
        let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        // The standard library checks a descriptor before it closes one, in builds with debug assertions.
        let get_flags =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::F_GETFD as u64)
                .and_then(|condition| SeccompRule::new(vec![condition]))
                .map_err(text)?;
        rules.insert(libc::SYS_fcntl, vec![get_flags]);
        // An allocator names the memory that it maps, for `/proc/PID/maps`.
        let name_memory =
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::PR_SET_VMA as u64)
                .and_then(|condition| SeccompRule::new(vec![condition]))
                .map_err(text)?;
        rules.insert(libc::SYS_prctl, vec![name_memory]);
        rules.insert(libc::SYS_mmap, not_executable()?);
        rules.insert(libc::SYS_mprotect, not_executable()?);
        let arch = std::env::consts::ARCH.try_into().map_err(text)?;
        SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, arch)
            .and_then(TryInto::try_into)
            .map_err(text)
    }
}

/// Code compiled by this process from text that it chose to compile.
pub(crate) struct Bytecode(Vec<u8>);

/// Compiles a script in strict mode without running it. `strip` leaves out line numbers.
pub(crate) fn compile(ctx: &Ctx<'_>, text: &CStr, name: &CStr, strip: bool) -> rquickjs::Result<Bytecode> {
    let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_STRICT | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
    let debug = if strip { qjs::JS_WRITE_OBJ_STRIP_DEBUG } else { 0 };
    let keep = qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE | debug;
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: both texts end in NUL and the length is that of the text without it; the compiled value and the written bytes are
    // freed here, with the functions that belong to them.
    unsafe {
        let code = qjs::JS_Eval(raw, text.as_ptr(), text.count_bytes() as _, name.as_ptr(), flags as _);
        if qjs::JS_IsException(code) {
            return Err(rquickjs::Error::Exception);
        }
        let mut len = 0;
        let bytes = qjs::JS_WriteObject(raw, &mut len, code, keep as _);
        qjs::JS_FreeValue(raw, code);
        if bytes.is_null() {
            return Err(rquickjs::Error::Exception);
        }
        let copy = std::slice::from_raw_parts(bytes, len as usize).to_vec();
        qjs::js_free(raw, bytes.cast());
        Ok(Bytecode(copy))
    }
}

/// Runs compiled code in the realm `ctx` and gives its completion value.
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, code: &Bytecode) -> rquickjs::Result<Value<'js>> {
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the bytes were written by `compile` of the same engine in the same process; `JS_EvalFunction` takes the function,
    // and its result is owned by the value that is returned.
    unsafe {
        let function =
            qjs::JS_ReadObject(raw, code.0.as_ptr(), code.0.len() as _, qjs::JS_READ_OBJ_BYTECODE as _);
        if qjs::JS_IsException(function) {
            return Err(rquickjs::Error::Exception);
        }
        let value = qjs::JS_EvalFunction(raw, function);
        if qjs::JS_IsException(value) {
            return Err(rquickjs::Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), value))
    }
}

/// Puts the realm on `heap` back to its image, between two runs.
pub(crate) fn restore(heap: &super::heap::Heap) {
    // SAFETY: called between two runs. What the host holds of the realm is older than the image (`Realm` has it all), what a
    // run made was dropped when it ended, and the objects with native parts are held by `Realm`, so none was finalized.
    unsafe { heap.restore() };
}

/// A text with U+FFFD for every byte that is not UTF-8; empty for anything but a text.
pub(crate) fn lossy_text(value: &Value<'_>) -> String {
    if !value.is_string() {
        return String::new();
    }
    let ctx = value.ctx().as_raw().as_ptr();
    let mut len = 0;
    // SAFETY: the value is a live text; the engine's bytes are read before they are given back, with the length it gave.
    unsafe {
        let bytes = qjs::JS_ToCStringLen(ctx, &mut len, value.as_raw());
        if bytes.is_null() {
            return String::new();
        }
        let text = String::from_utf8_lossy(std::slice::from_raw_parts(bytes.cast(), len)).into_owned();
        qjs::JS_FreeCString(ctx, bytes);
        text
    }
}

/// Characters of a text, also of one whose parts are not joined yet; 0 for anything else.
pub(crate) fn text_len(value: &Value<'_>) -> u64 {
    let mut len = 0;
    // SAFETY: the value is alive; reading the length of a text runs no code of the script's.
    unsafe {
        let raw = value.as_raw();
        let tag = qjs::JS_VALUE_GET_TAG(raw);
        if tag != qjs::JS_TAG_STRING && tag != qjs::JS_TAG_STRING_ROPE {
            return 0;
        }
        if qjs::JS_GetLength(value.ctx().as_raw().as_ptr(), raw, &mut len) != 0 {
            return 0;
        }
    }
    len.unsigned_abs()
}
