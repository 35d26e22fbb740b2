//! Limits the lines that one place in the code logs: strangers cause some, such as one for each refused request.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    callsite::Identifier,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::layer::{Context, Filter};

/// Lines of one place at once.
const BURST: f64 = 1_000.0;
/// Lines of one place a second, when it has logged so many.
const PER_SECOND: f64 = 5.0;
/// Time between two reports of lines that were left out.
const REPORT: Duration = Duration::from_secs(10);
/// The audit is complete.
const AUDIT: &str = "gatewright::audit";

/// The places that logged something. There are as many as the code has.
static PLACES: Mutex<Places> = Mutex::new(Places { by_callsite: None, is_reported: false });

struct Places {
    by_callsite: Option<HashMap<Identifier, Place>>,
    /// A thread reports what was left out.
    is_reported: bool,
}

struct Place {
    left: f64,
    at: Instant,
    /// Lines that were left out since the last report, and the message of the first.
    left_out: u64,
    message: String,
}

/// Leaves out lines of places that log too many, and reports their number. Levels below `info` are for whoever looks for something: they are complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Floods;

impl<S: Subscriber> Filter<S> for Floods {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || metadata.target() == AUDIT {
            return true;
        }
        let Some(is_first) = leave_out(metadata.callsite()) else { return true };
        if is_first {
            // Outside of the lock: the fields of an event are written by code that may log.
            let mut message = String::new();
            event.record(&mut Message(&mut message));
            let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
            let place = places.by_callsite.as_mut().and_then(|places| places.get_mut(&metadata.callsite()));
            if let Some(place) = place {
                place.message = message;
            }
        }
        false
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        None
    }
}

/// Counts a line of a place that has logged too many. Returns `true` for the first since the last report, and none for a line that is to be written.
fn leave_out(callsite: Identifier) -> Option<bool> {
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let place = places.by_callsite.get_or_insert_default().entry(callsite).or_insert_with(|| Place::new(now));
    if place.takes(now) {
        return None;
    }
    place.left_out += 1;
    let is_first = place.left_out == 1;
    if !places.is_reported {
        places.is_reported = thread::Builder::new().name("log".to_owned()).spawn(report).is_ok();
    }
    Some(is_first)
}

impl Place {
    fn new(now: Instant) -> Self {
        Self { left: BURST, at: now, left_out: 0, message: String::new() }
    }

    /// Returns `true` if there is room for one line more.
    fn takes(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.left = (self.left + since * PER_SECOND).min(BURST);
        let takes = self.left >= 1.0;
        if takes {
            self.left -= 1.0;
        }
        takes
    }
}

/// Reports what was left out, until nothing more is.
fn report() {
    loop {
        thread::park_timeout(REPORT);
        let left_out = take_left_out();
        if left_out.is_empty() {
            return;
        }
        for (message, lines) in left_out {
            tracing::warn!(
                lines,
                like = message,
                "lines of the log were left out: there were too many of them"
            );
        }
    }
}

/// Messages of which lines were left out, and their numbers.
fn take_left_out() -> Vec<(String, u64)> {
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    let all = places.by_callsite.iter_mut().flat_map(HashMap::values_mut);
    let left_out: Vec<_> = all
        .filter(|place| place.left_out > 0)
        .map(|place| (std::mem::take(&mut place.message), std::mem::take(&mut place.left_out)))
        .collect();
    // The thread ends when there is nothing more.
    places.is_reported = !left_out.is_empty();
    left_out
}

/// Takes the message of an event.
struct Message<'m>(&'m mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:.200?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        sync::{Arc, Mutex},
    };

    use tracing_subscriber::{Layer as _, layer::SubscriberExt as _};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_of_one_place_are_left_out_and_counted_when_there_are_too_many_and_others_and_the_audit_are_not()
    {
        let lines = Lines::default();
        let writer = lines.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(layer.with_filter(Floods));
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..5_000 {
                tracing::info!(n, "a stranger was refused");
                tracing::info!(target: AUDIT, n, "a call was made");
            }
            tracing::info!("something else happened");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let refused = text.matches("a stranger was refused").count();
        // A slow machine has time for some more.
        assert!((1_000..3_000).contains(&refused), "{refused}");
        assert_eq!(text.matches("a call was made").count(), 5_000);
        assert_eq!(text.matches("something else happened").count(), 1);
        let left_out = take_left_out();
        let of =
            |wanted: &str| left_out.iter().find(|(message, _)| message == wanted).map(|(_, lines)| *lines);
        assert_eq!(of("a stranger was refused"), Some(5_000 - refused as u64), "{left_out:?}");
    }
}
