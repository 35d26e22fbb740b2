//! The `gatewright` binary.
#![deny(unsafe_code)]

use std::process::ExitCode;

// docs/adr/0007: with the C library's allocator a request costs a quarter more while the number of requests rises and falls.
#[cfg(all(target_os = "linux", target_env = "gnu", not(feature = "jemalloc")))]
mod allocator;

#[cfg(all(target_os = "linux", target_env = "gnu", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(feature = "jemalloc")))]
    let collect = {
        allocator::set_up();
        allocator::collect
    };
    #[cfg(not(all(target_os = "linux", target_env = "gnu", not(feature = "jemalloc"))))]
    let collect = || {};
    gatewright_cli::main(collect)
}
