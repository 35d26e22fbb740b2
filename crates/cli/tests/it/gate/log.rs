//! Output of a child process, line by line.

use std::{
    io::{BufRead as _, BufReader, Read},
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

/// Lines that a process prints, in the order of their arrival.
#[derive(Default)]
pub struct Log {
    printed: Mutex<Printed>,
    changed: Condvar,
}

#[derive(Default)]
struct Printed {
    lines: Vec<String>,
    /// Streams that are not read to their end.
    open: usize,
}

impl Log {
    /// Reads another stream in a thread of its own. Bytes that are not UTF-8 become U+FFFD.
    pub(super) fn follow(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        self.printed.lock().unwrap().open += 1;
        let log = self.clone();
        std::thread::spawn(move || {
            let (mut stream, mut line) = (BufReader::new(stream), Vec::new());
            while stream.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                log.printed.lock().unwrap().lines.push(text);
                log.changed.notify_all();
            }
            log.printed.lock().unwrap().open -= 1;
            log.changed.notify_all();
        });
    }

    pub fn text(&self) -> String {
        self.printed.lock().unwrap().lines.join("\n")
    }

    /// The complete output of a process that is ending. Panics if its streams stay open longer than `patience`, because the output would
    /// be incomplete.
    pub(super) fn text_to_the_end(&self, patience: Duration) -> String {
        let printed = self.printed.lock().unwrap();
        let (printed, waited) =
            self.changed.wait_timeout_while(printed, patience, |printed| printed.open > 0).unwrap();
        let (text, open) = (printed.lines.join("\n"), printed.open);
        drop(printed);
        assert!(!waited.timed_out(), "streams ({open}) of a server that ended are still open: {text}");
        text
    }

    /// The first line that contains `part`; `None` if the process ended without it.
    pub fn wait_for(&self, part: &str) -> Option<String> {
        let mut printed = self.printed.lock().unwrap();
        loop {
            if let Some(line) = printed.lines.iter().find(|line| line.contains(part)) {
                return Some(line.clone());
            }
            if printed.open == 0 {
                return None;
            }
            let (next, waited) = self.changed.wait_timeout(printed, Duration::from_secs(60)).unwrap();
            assert!(!waited.timed_out(), "no `{part}` within a minute: {}", next.lines.join("\n"));
            printed = next;
        }
    }
}

/// The message of a panic.
pub(super) fn said(what: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *std::panic::catch_unwind(what).unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn output_is_complete_once_both_streams_are_at_their_end() {
    use std::io::Write as _;

    let log = Arc::new(Log::default());
    let (out, mut write_out) = std::io::pipe().unwrap();
    let (err, write_err) = std::io::pipe().unwrap();
    log.follow(out);
    log.follow(err);
    drop(write_err);
    write_out.write_all(b"one \xff\n").unwrap();
    assert_eq!(log.wait_for("one").unwrap(), "one \u{fffd}");
    // The output is still open: what was printed so far is not taken for all of it.
    let reader = log.clone();
    let told = said(std::panic::AssertUnwindSafe(move || {
        reader.text_to_the_end(Duration::from_millis(1));
    }));
    assert!(told.contains("of a server that ended are still open: one"), "{told}");
    let writer = std::thread::spawn(move || {
        write_out.write_all(b"two, without an end of its line").unwrap();
    });
    let all = log.text_to_the_end(Duration::from_secs(60));
    writer.join().unwrap();
    assert_eq!(all, "one \u{fffd}\ntwo, without an end of its line");
    assert_eq!(log.wait_for("three"), None);
}
