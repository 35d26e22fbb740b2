//! The `gatewright` binary.
#![forbid(unsafe_code)]

use std::process::ExitCode;

// docs/adr/0007: what the C library's allocator does when the number of requests under way goes up and down costs a quarter of a request.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    gatewright_cli::main()
}
