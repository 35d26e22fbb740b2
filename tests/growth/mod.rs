//! Growth of work with the length of a text, in processor time of the thread that does it: a loaded machine changes little.

use std::{fs, hint::black_box, thread, time::Duration};

/// Growth of the work that is allowed when a text becomes twice as long: in proportion, and a quarter more.
pub const MOST: f64 = 2.5;
/// Lengths that are measured, in bytes, each twice the one before.
const LENGTHS: [usize; 7] = [1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16];
/// Work that takes less says nothing, in nanoseconds.
const LEAST: f64 = 5_000.0;

/// Pieces whose repetition makes work on text that is not linear grow the most.
pub const SHAPES: [&str; 24] = [
    "+/",
    "a/",
    "/",
    "//",
    "://",
    ":",
    "::",
    "\\",
    "+\\\\",
    "\\/",
    "%2F",
    "+%2F",
    "%",
    "at ",
    "    at f (x:1:2)\n",
    " ",
    "'",
    "\"",
    "(",
    "]",
    "\u{1f600}",
    "a\u{301}",
    "+'/a",
    "+:/.!",
];

/// `piece` again and again, up to `len` bytes.
pub fn repeated(piece: &str, len: usize) -> String {
    piece.repeat(len / piece.len())
}

/// Fails when `work` on a text grows by more than two and a half times, on average, where its length doubles.
pub fn assert_linear(what: &str, make: impl Fn(usize) -> String, work: impl FnMut(&str)) {
    assert_linear_at(LENGTHS, what, make, work);
}

/// The same for texts of up to `longest` bytes: of longer ones a part is looked at, which hides how the work on it grows.
#[allow(dead_code, reason = "not every user of this file has such a limit")]
pub fn assert_linear_up_to(
    longest: usize,
    what: &str,
    make: impl Fn(usize) -> String,
    work: impl FnMut(&str),
) {
    assert_linear_at([16, 8, 4, 2, 1].map(|part| longest / part), what, make, work);
}

fn assert_linear_at<const N: usize>(
    lengths: [usize; N],
    what: &str,
    make: impl Fn(usize) -> String,
    mut work: impl FnMut(&str),
) {
    let texts = lengths.map(make);
    let mut costs = [f64::MAX; N];
    // What else the machine does makes a cost higher, never lower.
    for _ in 0..8 {
        for (cost, text) in costs.iter_mut().zip(&texts) {
            *cost = cost.min(cost_of(text, &mut work));
        }
        if growth(&costs) < MOST {
            return;
        }
    }
    let grown = growth(&costs);
    panic!("{what}: {costs:.0?} ns for {lengths:?} bytes grow by {grown:.1} with each doubling");
}

/// The growth for one doubling of the length, of costs in nanoseconds for lengths that double: the median, for a library that
/// takes another way from some length on makes one step, and work that is not linear grows at each.
pub fn growth(costs: &[f64]) -> f64 {
    let doublings = costs.windows(2).filter(|pair| pair[0] > LEAST);
    let mut grown: Vec<f64> = doublings.map(|pair| pair[1] / pair[0]).collect();
    grown.sort_by(f64::total_cmp);
    grown.get(grown.len() / 2).copied().unwrap_or_default()
}

/// Nanoseconds that `work` takes, the least of several tries.
fn cost_of(text: &str, work: &mut impl FnMut(&str)) -> f64 {
    let mut times = 1;
    let mut least = f64::MAX;
    let mut tries = 0;
    while tries < 3 {
        let before = processor_time();
        for _ in 0..times {
            work(black_box(text));
        }
        let took = processor_time() - before;
        if took < Duration::from_micros(200) && times < 1 << 14 {
            times *= 4;
            continue;
        }
        least = least.min(took.as_nanos() as f64 / f64::from(times));
        tries += 1;
    }
    least
}

/// Processor time that this thread has used.
fn processor_time() -> Duration {
    // The system brings the account up to date when the thread waits.
    thread::park_timeout(Duration::from_micros(1));
    let account = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux keeps accounts of threads");
    let nanoseconds = account.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}
