//! The fields of log lines, as text of one line: callers choose the values of some.

use std::fmt::{self, Debug, Write};

use gatewright_findings::write_printable;
use tracing::{
    Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{
        FormatFields, Layer, MakeWriter,
        format::{Format, Writer},
    },
    registry::LookupSpan,
};

/// A layer that writes each event as one line, whatever its message and fields hold.
pub fn text_layer<S, W>(writer: W) -> Layer<S, Escaped, Format, W>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + 'static,
{
    tracing_subscriber::fmt::layer().with_target(false).fmt_fields(Escaped).with_writer(writer)
}

/// Fields with control characters escaped.
#[derive(Debug, Clone, Copy)]
pub struct Escaped;

impl<'w> FormatFields<'w> for Escaped {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut visitor = Visitor { writer, is_first: true, result: Ok(()) };
        fields.record(&mut visitor);
        visitor.result
    }
}

struct Visitor<'w> {
    writer: Writer<'w>,
    is_first: bool,
    result: fmt::Result,
}

impl Visitor<'_> {
    fn write(&mut self, name: &str, value: &dyn Debug) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        let name = name.strip_prefix("r#").unwrap_or(name);
        match (name, self.writer.has_ansi_escapes()) {
            ("message", _) => {}
            (_, true) => write!(self.writer, "\u{1b}[3m{name}\u{1b}[0m\u{1b}[2m=\u{1b}[0m")?,
            (_, false) => write!(self.writer, "{name}=")?,
        }
        write!(Printable(&mut self.writer), "{value:?}")
    }
}

impl Visit for Visitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Facts about records of the crate `log`, which are the event's own.
        if self.result.is_ok() && !field.name().starts_with("log.") {
            self.result = self.write(field.name(), value);
        }
    }
}

/// A writer that escapes control characters.
struct Printable<'w, 'l>(&'w mut Writer<'l>);

impl Write for Printable<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_printable(text, self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(log: impl FnOnce()) -> String {
        let written = Written::default();
        let writer = written.clone();
        let layer = text_layer(move || writer.clone()).without_time().with_ansi(false);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        String::from_utf8(written.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_break_or_an_escape_sequence_in_a_field_the_message_or_a_span_stays_in_its_line() {
        let name = "x\n2026-11-23T02:33:26Z  INFO event=\"login.ok\"\r\u{1b}[2J\u{9b}\u{202e}";
        let text = logged(|| {
            let span = tracing::info_span!("call", tool.name = %name);
            let _in = span.enter();
            tracing::info!(tool.name = %name, error = ?name, other = name, n = 1, "unknown tool {name}");
        });
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let line = text.strip_suffix('\n').unwrap();
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        assert!(line.contains(r"unknown tool x\n2026") && line.contains("n=1"), "{line}");
    }
}
