//! The shapes that are learned from the answers of tools without an output schema (docs/adr/0016).

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use gatewright_core::{
    Audience, Caller, PermittedTool, ResultListener, ToolEntry,
    rmcp::model::{CallToolResult, ContentBlock},
};
use gatewright_shape::{Shape, Witness};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    ResultShape, declared,
    reading::{Reading, Texts},
};

/// Tools whose shapes are kept, each version and audience of its own. The one that was longest unused gives way.
const MOST_TOOLS: usize = 2_000;
/// Answers of a tool of which each is looked at.
const FIRST: u64 = 32;
/// Of later answers one in so many is looked at.
const SAMPLE: u64 = 64;
/// Callers of a tool whose first answers are looked at, and how many of each: names are shown to those who saw them.
const MOST_CALLERS: usize = 64;
const FIRST_OF_CALLER: u8 = 4;
/// Parts of an answer that are looked at, and bytes of a text that is parsed for it: while the tool is new, and later.
const EARLY_WORK: (usize, usize) = (1_024, 64 * 1024);
const LATER_WORK: (usize, usize) = (256, 16 * 1024);
/// Blocks of an answer that are looked at.
const MOST_BLOCKS: usize = 8;

/// Learned shapes of all tools. It hears of every answer that passes through the gateway.
#[derive(Debug)]
pub(crate) struct Shapes {
    is_on: AtomicBool,
    slots: RwLock<HashMap<Key, Arc<Slot>>>,
    clock: AtomicU64,
}

/// A version of a tool, and the callers who share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) version: [u8; 16],
    pub(super) audience: Audience,
}

impl Key {
    fn of(tool: &ToolEntry, caller: &Caller) -> Self {
        Self { version: tool.version(), audience: tool.audience(caller) }
    }
}

/// What is known of one tool.
#[derive(Debug, Default)]
pub(super) struct Slot {
    answers: AtomicU64,
    used: AtomicU64,
    callers: Mutex<Vec<(Witness, u8)>>,
    learned: Mutex<Learned>,
}

/// The shape of a tool's answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Learned {
    #[serde(rename = "s")]
    pub(super) shape: Shape,
    /// Answers it was learned from.
    #[serde(rename = "n")]
    pub(super) answers: u64,
    #[serde(rename = "t")]
    pub(super) texts: Texts,
}

impl Learned {
    fn learn(&mut self, value: &Value, witness: Witness, work: usize) {
        self.shape.learn(value, witness, work);
        self.answers += 1;
    }
}

impl Slot {
    /// Returns `true` for the first answers to a caller.
    fn is_early_for(&self, witness: Witness) -> bool {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = callers.len() == MOST_CALLERS;
        match callers.iter_mut().find(|(known, _)| *known == witness) {
            Some((_, seen)) if *seen == FIRST_OF_CALLER => false,
            Some((_, seen)) => {
                *seen += 1;
                true
            }
            None if is_full => false,
            None => {
                callers.push((witness, 1));
                true
            }
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shapes {
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on: AtomicBool::new(is_on), slots: RwLock::default(), clock: AtomicU64::new(0) }
    }

    /// Starts or stops learning. What was learned is forgotten when it stops.
    pub(crate) fn turn(&self, on: bool) {
        if self.is_on.swap(on, Ordering::Relaxed) && !on {
            self.slots.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// How the answers of `tool` to `caller` are read.
    pub(crate) fn reading(&self, tool: &ToolEntry, caller: &Caller) -> Reading {
        Reading::of(tool, || self.known(tool, caller).map(|slot| slot.lock().texts).unwrap_or_default())
    }

    /// The shape of the results of `tool`: the declared one, else what was learned, with the names that `caller` may see.
    pub(crate) fn result_shape(&self, tool: &ToolEntry, caller: &Caller) -> Option<ResultShape> {
        if let Some(declared) = declared::declared(tool) {
            return Some(declared);
        }
        let slot = self.known(tool, caller)?;
        let learned = slot.lock();
        (!learned.shape.is_empty()).then(|| ResultShape {
            schema: Arc::new(learned.shape.schema(witness(caller))),
            observed: Some(learned.answers),
        })
    }

    fn known(&self, tool: &ToolEntry, caller: &Caller) -> Option<Arc<Slot>> {
        if !self.is_on() {
            return None;
        }
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(&Key::of(tool, caller)).cloned()
    }

    fn slot(&self, tool: &ToolEntry, caller: &Caller) -> Arc<Slot> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let slot = self.known(tool, caller).unwrap_or_else(|| {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            if slots.len() >= MOST_TOOLS {
                let oldest = slots.iter().min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    slots.remove(&oldest);
                }
            }
            slots.entry(Key::of(tool, caller)).or_default().clone()
        });
        slot.used.store(now, Ordering::Relaxed);
        slot
    }

    fn look(slot: &Slot, result: &CallToolResult, witness: Witness, (work, bytes): (usize, usize)) {
        let mut learned = slot.lock();
        let reading = |learned: &Learned| Reading { unwraps: true, text: learned.texts.reading() };
        if let Some(value) = &result.structured_content {
            let reading = reading(&learned);
            return learned.learn(reading.structured_ref(value), witness, work);
        }
        let [ContentBlock::Text(text)] = result.content.as_slice() else {
            return learned.learn(&blocks(&result.content), witness, work);
        };
        let text = text.text.as_str();
        // A long text that may be JSON says nothing until it is parsed.
        if text.len() > bytes && text.trim_start().starts_with(['{', '[']) {
            return;
        }
        let value = if text.len() > bytes { None } else { reading(&learned).parsed(text) };
        let is_number = value.is_none() && gatewright_shape::loses_digits(text.trim());
        if !is_number {
            learned.texts.count(value.as_ref());
        }
        learned.learn(&value.unwrap_or_else(|| stand_in(text)), witness, work);
    }
}

impl ResultListener for Shapes {
    fn answered(&self, tool: &PermittedTool, result: &CallToolResult) {
        let is_declared = tool.tool.output_schema.as_deref().is_some_and(declared::tells);
        if is_declared || result.is_error == Some(true) || !self.is_on() {
            return;
        }
        let slot = self.slot(tool, tool.caller());
        let nth = slot.answers.fetch_add(1, Ordering::Relaxed);
        let witness = witness(tool.caller());
        let is_early = nth < FIRST || slot.is_early_for(witness);
        if is_early || nth.is_multiple_of(SAMPLE) {
            Self::look(&slot, result, witness, if is_early { EARLY_WORK } else { LATER_WORK });
        }
    }
}

/// The witness that `caller` is: the same for all clients of a subject, in any process.
fn witness(caller: &Caller) -> Witness {
    Witness::new(BuildHasherDefault::<DefaultHasher>::default().hash_one(&*caller.principal().subject))
}

/// A text of the same type: its content is not learned, but digits are.
fn stand_in(text: &str) -> Value {
    let text = text.trim();
    Value::from(if gatewright_shape::loses_digits(text) { text } else { "" })
}

/// Content as scripts get it, with empty texts.
fn blocks(content: &[ContentBlock]) -> Value {
    let handle = |kind: &str| json!({"type": kind, "mimeType": "", "size": 0, "handle": ""});
    let block = |block: &ContentBlock| match block {
        ContentBlock::Image(_) => handle("image"),
        ContentBlock::Audio(_) => handle("audio"),
        ContentBlock::Resource(_) => handle("resource"),
        ContentBlock::ResourceLink(_) => json!({"type": "resource_link", "uri": "", "name": ""}),
        _ => json!({"type": "text", "text": ""}),
    };
    content.iter().take(MOST_BLOCKS).map(block).collect()
}
