//! mimalloc, and settings of it and of the C library that give memory back (docs/adr/0007).
#![expect(unsafe_code, reason = "options of mimalloc can be set in C only")]

use std::{
    cell::Cell,
    ffi::{c_int, c_long},
    time::{Duration, Instant},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3: milliseconds after which freed memory goes back to the system.
const PURGE_DELAY: c_int = 15;

/// `M_MMAP_THRESHOLD` of the C library (`mallopt(3)`): larger blocks are areas of their own.
const OWN_AREA: c_int = -3;
const OWN_AREA_BYTES: c_int = 128 * 1024;

unsafe extern "C" {
    fn mi_option_set(option: c_int, value: c_long);
    fn mi_collect(force: bool);
    fn mallopt(option: c_int, value: c_int) -> c_int;
}

/// Shortest time between two collections of a thread.
const COLLECTED_EVERY: Duration = Duration::from_millis(250);

thread_local! {
    static COLLECTED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Gives back what other threads freed of the memory of this one, which is about to wait. mimalloc looks at it when the thread allocates a block of that size the next time.
pub(crate) fn collect() {
    let now = Instant::now();
    if COLLECTED.get().is_none_or(|last| now.duration_since(last) >= COLLECTED_EVERY) {
        COLLECTED.set(Some(now));
        // SAFETY: the function may be called at any time, and works on what is free only.
        unsafe { mi_collect(true) };
    }
}

/// Gives freed memory back at once, unless `MIMALLOC_PURGE_DELAY` says otherwise. By default mimalloc keeps it for a second at least, and for as long as nothing
/// else is allocated; what the system says is free, which decides on new work, would be too little by what the largest requests took. The C library does the same with
/// large blocks from now on.
pub(crate) fn set_up() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the function takes two numbers, may be called at any time, and ignores options that it does not know.
        unsafe { mi_option_set(PURGE_DELAY, 0) };
    }
    // For what is written in C, such as SQLite. Once it is set, the C library does not raise it with the size of what was freed.
    // SAFETY: the function takes two numbers, and nothing runs beside this yet.
    unsafe { mallopt(OWN_AREA, OWN_AREA_BYTES) };
}
