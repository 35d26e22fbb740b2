//! Host calls of a run: answered by the journal that it goes through again or by the host, and the suspension of a run whose calls wait.

use std::{mem, sync::Arc};

use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;

use super::{
    super::{
        answers::{Answering, Calls},
        replay::Recorded,
    },
    Record, RunEnd,
};
use crate::{
    host::Host,
    journal::{HostFunction, JournalEntry, Resumed},
    outcome::WorkerError,
    protocol::{Frame, MessageKind},
};

impl Record {
    /// Host calls that are under way.
    pub(in crate::pool) fn under_way(&self) -> u32 {
        self.open.saturating_sub(self.journaled.waiting)
    }

    /// Those of them that call something, and are no question about a tool.
    pub(in crate::pool) fn calls_under_way(&self) -> u32 {
        self.under_way().saturating_sub(self.open_questions)
    }

    /// Has the script asked whether it waits for nothing but calls that take long. Returns the ping to send.
    pub(in crate::pool) fn ask_to_park(&mut self) -> Option<u32> {
        let may_park = self.under_way() > 0 && self.judging.is_none() && !self.journaled.suspending;
        if !may_park || self.journaled.is_in_the_past() || self.journaled.pinged.is_some() {
            return None;
        }
        self.ping_now()
    }

    /// Returns `true` once the script waits for nothing but calls that take long.
    pub(in crate::pool) fn may_park(&self) -> bool {
        self.journaled.is_idle && self.under_way() > 0 && !self.journaled.suspending
    }

    fn ping_now(&mut self) -> Option<u32> {
        self.journaled.pings += 1;
        self.journaled.pinged = Some((self.journaled.pings, self.asked.len()));
        self.journaled.is_idle = false;
        Some(self.journaled.pings)
    }

    /// The ping to send, when nothing but answers from outside can take the run on, as far as this side knows.
    pub(in crate::pool) fn ping(&mut self) -> Option<u32> {
        let is_stalled = self.open > 0 && self.under_way() == 0 && self.judging.is_none();
        if !is_stalled || self.journaled.suspending || self.journaled.pinged.is_some() {
            return None;
        }
        self.ping_now()
    }

    /// Takes the worker's word that it had nothing left to run when it got this ping.
    pub(super) fn idle(&mut self, ping: u32) {
        self.journaled.is_idle = self.journaled.pinged == Some((ping, self.asked.len()));
    }

    /// Returns `true` once the script waits for answers from outside, and for nothing else.
    pub(in crate::pool) fn is_suspended(&self) -> bool {
        self.journaled.is_idle && self.under_way() == 0 && !self.journaled.suspending
    }

    /// The next answer of the journal that the run goes through again.
    pub(in crate::pool) fn replayed(&mut self) -> Option<JournalEntry> {
        let asked = self.asked.len();
        self.journaled.replaying.as_mut()?.next_answer(asked).cloned()
    }

    /// Makes the calls that the journal does not answer, once the script has had all answers of it.
    pub(in crate::pool) fn release(&mut self, answering: &mut FuturesUnordered<Answering>) {
        if self.journaled.deferred.is_empty() || self.journaled.is_in_the_past() {
            return;
        }
        for (entry, call) in mem::take(&mut self.journaled.deferred) {
            self.journaled.note(|| entry);
            answering.push(call);
        }
    }

    /// Takes a host call: answered by the journal that is replayed, or by the host.
    pub(super) fn ask(
        &mut self,
        frame: &Frame<'_>,
        host: &Arc<dyn Host>,
        calls: &mut Calls,
    ) -> Result<(), RunEnd> {
        let invalid = || RunEnd::from(WorkerError::MessageInvalid);
        let function = match frame.kind {
            MessageKind::Call => HostFunction::CallTool,
            MessageKind::CallPages => HostFunction::CallPages,
            MessageKind::Content => HostFunction::Content,
            _ => HostFunction::GetTool,
        };
        let weight = gatewright_json::weight(frame.body);
        let input = match function {
            HostFunction::GetTool => "null",
            _ if weight.is_ok() => frame.body,
            _ => "null",
        };
        let recorded = match &mut self.journaled.replaying {
            Some(replaying) => replaying.find(frame.id, function, frame.head, input)?,
            None => Recorded::New,
        };
        if matches!(recorded, Recorded::New) {
            self.count_message()?;
        }
        self.open_call(frame)?;
        let input = RawValue::from_string(input.to_owned()).map_err(|_| invalid())?;
        if let (Some(asked), Ok(weight), true) =
            (self.asked.last_mut(), weight, function != HostFunction::GetTool)
        {
            asked.memory = weight;
            self.memory += weight;
        }
        self.check_host(0)?;
        let entry = || JournalEntry::Call {
            id: frame.id,
            at_ms: self.elapsed_ms() as u64,
            function,
            name: frame.head.to_owned(),
            input: input.clone(),
        };
        if calls.open.contains(&frame.id) {
            // Its answer is on its way.
            self.journaled.at_host.insert(frame.id);
            return Ok(());
        }
        let (entry, resumed) = match recorded {
            Recorded::Open(Resumed::Waited(_)) if calls.is_resumed => {
                self.journaled.waiting += 1;
                return Ok(());
            }
            Recorded::Answered { at_ms } => {
                if let Some(call) = self.calls.last_mut().filter(|_| function != HostFunction::GetTool) {
                    call.started_ms = at_ms as f64;
                }
                return Ok(());
            }
            Recorded::Open(resumed) => (JournalEntry::Retried { id: frame.id }, Some(resumed)),
            Recorded::New if self.journaled.unwritten.is_some() => (entry(), None),
            Recorded::New => (JournalEntry::Retried { id: frame.id }, None),
        };
        let is_deferred = self.journaled.is_in_the_past();
        let call = self.answer(frame, function, weight.err(), input, resumed, host)?;
        self.journaled.at_host.insert(frame.id);
        // The script does something: it is to be asked again whether it waits.
        self.journaled.is_idle = false;
        self.journaled.pinged = None;
        if is_deferred {
            self.journaled.deferred.push((entry, call));
        } else {
            self.journaled.note(|| entry);
            calls.answering.push(call);
        }
        Ok(())
    }

    /// Notes that an open call waits for something outside of the run.
    pub(in crate::pool) fn wait(&mut self, id: u32, state: Box<RawValue>) {
        self.journaled.waiting += 1;
        self.journaled.at_host.remove(&id);
        self.journaled.is_idle = false;
        self.journaled.pinged = None;
        self.journaled.note(|| JournalEntry::Waits { id, state });
    }
}
