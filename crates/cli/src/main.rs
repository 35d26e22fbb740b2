//! The `gatewright` binary.
#![forbid(unsafe_code)]

use std::process::ExitCode;

// docs/adr/0007: with the C library's allocator a request costs a quarter more while the number of requests rises and falls.
#[cfg(all(target_os = "linux", target_env = "gnu", not(feature = "jemalloc")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(all(target_os = "linux", target_env = "gnu", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    gatewright_cli::main()
}
