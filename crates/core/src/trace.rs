//! A place in a distributed trace (W3C Trace Context, level 1).

/// Ids of a span and of the one above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: [u8; 16],
    /// This span.
    pub span_id: [u8; 8],
    /// The span above, when there is one.
    pub parent_id: Option<[u8; 8]>,
    /// Whether the caller records the trace.
    pub sampled: bool,
}

impl TraceContext {
    /// A span below the one a `traceparent` names; the first of a new trace without one, or with one that cannot be read.
    pub fn below(traceparent: Option<&str>) -> Self {
        let above = traceparent.and_then(Self::parse);
        let span_id = random();
        match above {
            Some((trace_id, parent, sampled)) => Self { trace_id, span_id, parent_id: Some(parent), sampled },
            None => Self { trace_id: random(), span_id, parent_id: None, sampled: true },
        }
    }

    /// A span below this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            trace_id: self.trace_id,
            span_id: random(),
            parent_id: Some(self.span_id),
            sampled: self.sampled,
        }
    }

    /// `traceparent` for whoever is called from here.
    pub fn to_header(&self) -> String {
        format!("00-{}-{}-{:02x}", hex(&self.trace_id), hex(&self.span_id), u8::from(self.sampled))
    }

    fn parse(text: &str) -> Option<([u8; 16], [u8; 8], bool)> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may add parts (§3.2.4); this one has none.
        if version == "ff" || version.len() != 2 || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let (trace, span) = (unhex::<16>(trace)?, unhex::<8>(span)?);
        let [flags] = unhex::<1>(flags)?;
        (trace != [0; 16] && span != [0; 8]).then_some((trace, span, flags & 1 == 1))
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without randomness the id is not unique; that costs a trace its shape and nothing else.
    if getrandom::fill(&mut bytes).is_err() {
        bytes[N - 1] = 1;
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let lower = text.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    if text.len() != 2 * N || !lower {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOVE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_span_stays_in_the_trace_of_the_one_above() {
        let span = TraceContext::below(Some(ABOVE));
        assert_eq!(hex(&span.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(span.parent_id.map(|id| hex(&id)).as_deref(), Some("00f067aa0ba902b7"));
        let child = span.child();
        assert_eq!((child.trace_id, child.parent_id), (span.trace_id, Some(span.span_id)));
        assert_eq!(child.to_header(), format!("00-{}-{}-01", hex(&span.trace_id), hex(&child.span_id)));
    }

    #[test]
    fn what_cannot_be_read_starts_a_new_trace() {
        for bad in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::below(Some(bad)).parent_id, None, "{bad}");
        }
        assert!(
            TraceContext::below(Some("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-x"))
                .parent_id
                .is_some()
        );
    }
}
