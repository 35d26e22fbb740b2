//! Rules that the kernel enforces on a worker: files and network (Landlock), system calls (seccomp).

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// No file, no TCP port, no abstract socket, no signal to other processes.
pub(super) fn confine() -> Result<bool, landlock::RulesetError> {
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

/// System calls of a running script: its socket, memory, time, and the way out (abort and faults included, so that they are
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

pub(super) fn filter() -> Result<BpfProgram, String> {
    let text = |error: seccompiler::BackendError| error.to_string();
    // Memory that can be executed is never mapped.
    let not_executable = || -> Result<Vec<SeccompRule>, String> {
        let exec = libc::PROT_EXEC as u64;
        let condition = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(exec), 0)
            .map_err(text)?;
        Ok(vec![SeccompRule::new(vec![condition]).map_err(text)?])
    };
    let mut rules: std::collections::BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    // The standard library checks a descriptor before it closes one, in builds with debug assertions.
    let get_flags = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, libc::F_GETFD as u64)
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
