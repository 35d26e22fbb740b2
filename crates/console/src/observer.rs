//! Fills the journal from what the gateway tells.

use gatewright_core::{Execution as Told, Observer};

use crate::{Call, Ending, Execution, Journal};

fn ending(told: &gatewright_core::Ending) -> Ending {
    if told.is_ok() { Ending::ok() } else { Ending::failed(told.status()) }
}

impl Observer for Journal {
    fn finished(&self, told: &Told) {
        let calls = told.calls.iter().map(|call| Call {
            tool: call.tool.clone(),
            start: call.start,
            duration: call.duration,
            ending: ending(&call.ending),
            bytes: call.bytes,
        });
        self.record(Execution {
            id: 0,
            name: told.tool.clone(),
            subject: told.principal.subject.clone(),
            started: told.started,
            duration: told.duration,
            ending: ending(&told.ending),
            script_bytes: told.script.map(|script| script.bytes as u64),
            calls: calls.collect(),
            more_calls: told.more_calls,
        });
    }
}
