//! Host calls of a run: answered by the journal that it goes through again or by the host, and the suspension of a run whose calls wait.

use std::{mem, sync::Arc};

use futures::stream::FuturesUnordered;
use serde_json::value::RawValue;

use super::{super::replay::Recorded, Answering, Record, RunEnd};
use crate::{
    host::{Host, ToolFailure},
    journal::{HostFunction, JournalEntry},
    outcome::WorkerError,
    protocol::{self, Frame, MessageKind},
};

impl Record {
    /// Host calls that are under way.
    pub(in crate::pool) fn under_way(&self) -> u32 {
        self.open.saturating_sub(self.journaled.waiting)
    }

    /// The ping to send, when nothing but answers from outside can take the run on, as far as this side knows.
    pub(in crate::pool) fn ping(&mut self) -> Option<u32> {
        let is_stalled = self.open > 0 && self.under_way() == 0 && self.judging.is_none();
        if !is_stalled || self.journaled.suspending || self.journaled.pinged == Some(self.asked.len()) {
            return None;
        }
        self.journaled.pinged = Some(self.asked.len());
        self.journaled.is_idle = false;
        u32::try_from(self.asked.len()).ok()
    }

    /// Takes the worker's word that it has nothing left to run, since it had made `asked` host calls.
    pub(super) fn idle(&mut self, asked: u32) {
        let asked = asked as usize;
        self.journaled.is_idle = self.journaled.pinged == Some(asked) && self.asked.len() == asked;
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
        if self.journaled.held.is_empty() || self.journaled.is_in_the_past() {
            return;
        }
        for (entry, call) in mem::take(&mut self.journaled.held) {
            self.journaled.note(|| entry);
            answering.push(call);
        }
    }

    /// Takes a host call: answered by the journal that is replayed, or by the host.
    pub(super) fn ask(
        &mut self,
        frame: &Frame<'_>,
        host: &Arc<dyn Host>,
        answering: &mut FuturesUnordered<Answering>,
    ) -> Result<(), RunEnd> {
        let invalid = || RunEnd::from(WorkerError::MessageInvalid);
        let function = match frame.kind {
            MessageKind::Call => HostFunction::CallTool,
            MessageKind::Content => HostFunction::Content,
            _ => HostFunction::GetTool,
        };
        let weight = protocol::weight(frame.body);
        let input = match function {
            HostFunction::CallTool | HostFunction::Content if weight.is_some() => frame.body,
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
        if let (Some(asked), Some(weight), true) =
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
        let (entry, resumed) = match recorded {
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
        let is_held = self.journaled.is_in_the_past();
        let call = self.answer(frame, function, weight.is_none(), input, resumed, host)?;
        if is_held {
            self.journaled.held.push((entry, call));
        } else {
            self.journaled.note(|| entry);
            answering.push(call);
        }
        Ok(())
    }

    /// Notes that an open call waits for something outside of the run.
    pub(in crate::pool) fn wait(&mut self, id: u32, state: Box<RawValue>) {
        self.journaled.waiting += 1;
        self.journaled.note(|| JournalEntry::Waits { id, state });
    }

    /// Notes the answer that the script is about to see.
    pub(in crate::pool) fn answered(
        &mut self,
        id: u32,
        at_ms: u64,
        answer: Result<Box<RawValue>, ToolFailure>,
        kept: Option<Box<RawValue>>,
    ) {
        self.journaled.note(|| JournalEntry::Answer { id, at_ms, answer, kept });
    }
}
