//! The shapes that are learned from the answers of tools whose output schema leaves types open, or that have none (docs/adr/0016).

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use gatewright_core::{
    Audience, Caller, PermittedTool, ResultListener, ToolEntry,
    rmcp::model::{CallToolResult, ContentBlock},
};
use gatewright_shape::Witness;
use serde_json::{Value, json};

use super::{
    ResultShape, declared,
    open_parts::{Required, complete, leaves_open},
    reading::{Read, Reading, is_scalar},
    slot::{Bounds, Slot},
};

/// Tools whose shapes are kept, each version and audience of its own. The one that was longest unused gives way.
const MOST_TOOLS: usize = 2_000;
/// Places of the shapes of all tools; each takes about half a kilobyte. Those that were longest unused give way.
const MOST_NODES: usize = 100_000;
/// Tools that are looked for at other instances at once because someone asked for their shapes.
const MOST_WANTED: usize = 1_000;
/// Blocks of an answer that are looked at.
const MOST_BLOCKS: usize = 8;

/// Learned shapes of all tools. It hears of every answer that passes through the gateway.
#[derive(Debug)]
pub(crate) struct Shapes {
    is_on: AtomicBool,
    is_shared: AtomicBool,
    slots: RwLock<HashMap<Key, Arc<Slot>>>,
    /// Places of the shapes in all slots.
    nodes: AtomicUsize,
    clock: AtomicU64,
    /// Tools of which nothing is known here and whose shapes were asked for.
    wanted: Mutex<HashSet<Key>>,
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

impl Shapes {
    pub(crate) fn new(is_on: bool) -> Self {
        Self {
            is_on: AtomicBool::new(is_on),
            is_shared: AtomicBool::new(false),
            slots: RwLock::default(),
            nodes: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            wanted: Mutex::default(),
        }
    }

    /// Starts or stops learning. What was learned is forgotten when it stops.
    pub(crate) fn turn(&self, on: bool) {
        if self.is_on.swap(on, Ordering::Relaxed) && !on {
            self.slots.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// The slot of `tool` for those who share it with `caller`.
    pub(super) fn slot_of(&self, tool: &ToolEntry, caller: &Caller) -> Arc<Slot> {
        self.slot(&Key::of(tool, caller))
    }

    /// The same, if something may have been learned of the tool.
    pub(super) fn slot_if_known(&self, tool: &ToolEntry, caller: &Caller) -> Option<Arc<Slot>> {
        self.known(&Key::of(tool, caller))
    }

    /// Keeps what is learned from now on for other instances.
    pub(super) fn set_shared(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// The reading of the answers of `tool` to `caller`.
    pub(crate) fn reading(&self, tool: &ToolEntry, caller: &Caller) -> Reading {
        let texts = || self.slot_if_known(tool, caller).map(|slot| slot.texts_for(witness(caller)));
        Reading::of(tool, || texts().unwrap_or_default())
    }

    /// The shape of the results of `tool`: the declared one, else what was learned, with the names that `caller` may see.
    pub(crate) fn result_shape(&self, tool: &ToolEntry, caller: &Caller) -> Option<ResultShape> {
        if let Some(mut declared) = declared::declared(tool) {
            if declared::is_text(&declared.schema) {
                let slot = self.known(&Key::of(tool, caller));
                declared.text = slot.and_then(|slot| slot.lock().all().kinds.common());
            }
            return Some(declared);
        }
        let key = Key::of(tool, caller);
        let Some(slot) = self.known(&key) else {
            self.want(key);
            return None;
        };
        slot.lock().result_shape(witness(caller))
    }

    /// The same to show to `caller`: where the declared shape leaves types open, with what was learned there.
    pub(crate) fn shown_shape(&self, tool: &ToolEntry, caller: &Caller) -> Option<ResultShape> {
        let mut shape = self.result_shape(tool, caller)?;
        if shape.observed.is_none() && leaves_open(&shape.schema) {
            let key = Key::of(tool, caller);
            let Some(slot) = self.known(&key) else {
                self.want(key);
                return Some(shape);
            };
            if let Some(learned) = slot.lock().result_shape(witness(caller)) {
                complete(Arc::make_mut(&mut shape.schema), &learned.schema, Required::AsDeclared);
                shape.observed = learned.observed;
            }
        }
        Some(shape)
    }

    /// Notes that other instances may know the shape of `key`.
    fn want(&self, key: Key) {
        if self.is_shared() && self.is_on() {
            let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
            if wanted.len() < MOST_WANTED {
                wanted.insert(key);
            }
        }
    }

    /// The tools that were asked for in vain since the last time.
    pub(super) fn take_wanted(&self) -> HashSet<Key> {
        std::mem::take(&mut *self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The slots of tools, with their keys.
    pub(super) fn slots(&self) -> Vec<(Key, Arc<Slot>)> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.iter().map(|(key, slot)| (key.clone(), slot.clone())).collect()
    }

    fn known(&self, key: &Key) -> Option<Arc<Slot>> {
        if !self.is_on() {
            return None;
        }
        let slot = self.unused(key)?;
        slot.use_at(self.clock.fetch_add(1, Ordering::Relaxed));
        Some(slot)
    }

    /// The slot of `key`, without counting as a use.
    pub(super) fn unused(&self, key: &Key) -> Option<Arc<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(super) fn slot(&self, key: &Key) -> Arc<Slot> {
        self.known(key).unwrap_or_else(|| {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            if slots.len() >= MOST_TOOLS {
                let oldest = slots.iter().min_by_key(|(_, slot)| slot.used());
                if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                    slots.remove(&oldest);
                }
            }
            let slot = slots.entry(key.clone()).or_default().clone();
            slot.use_at(self.clock.fetch_add(1, Ordering::Relaxed));
            slot
        })
    }

    /// Counts what `slot` keeps now. If all keep too much, those that were longest unused are forgotten.
    pub(super) fn recount(&self, slot: &Slot) {
        let (now, before) = slot.count();
        if now > before && self.nodes.fetch_add(now - before, Ordering::Relaxed) + now - before <= MOST_NODES
        {
            return;
        }
        if now <= before {
            self.nodes.fetch_sub(before - now, Ordering::Relaxed);
            return;
        }
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let mut by_use: Vec<_> =
            slots.iter().map(|(key, slot)| (slot.used(), slot.nodes(), key.clone())).collect();
        by_use.sort_unstable_by_key(|(used, ..)| std::cmp::Reverse(*used));
        // The latest stay, up to a bit less than what all may keep: this is not done each time.
        let mut kept = 0;
        for (_, nodes, key) in by_use {
            if kept > 0 && kept + nodes > MOST_NODES / 8 * 7 {
                slots.remove(&key);
            } else {
                kept += nodes;
            }
        }
        self.nodes.store(kept, Ordering::Relaxed);
    }

    /// Looks at the format of a text that the tool declares as text.
    fn look_at_text(&self, slot: &Slot, result: &CallToolResult, bounds: Bounds) {
        let text = match (&result.structured_content, result.content.as_slice()) {
            (Some(Value::Object(members)), _) => members.get(declared::RESULT).and_then(Value::as_str),
            (Some(value), _) => value.as_str(),
            (None, [ContentBlock::Text(text)]) => Some(text.text.as_str()),
            _ => None,
        };
        if let Some(text) = text.filter(|text| text.len() <= bounds.bytes) {
            slot.lock().count_kind(text, self.is_shared());
        }
    }

    fn look(
        &self,
        slot: &Slot,
        result: &CallToolResult,
        reading: &Reading,
        witness: Witness,
        bounds: Bounds,
    ) {
        let to_share = self.is_shared();
        let mut learned = slot.lock();
        if let Some(value) = &result.structured_content {
            return learned.learn(reading.structured_ref(value), witness, bounds.work, to_share);
        }
        let [ContentBlock::Text(text)] = result.content.as_slice() else {
            return learned.learn(&blocks(&result.content), witness, bounds.work, to_share);
        };
        let text = text.text.as_str();
        let is_long = text.len() > bounds.bytes;
        // A long text that may be JSON says nothing until it is parsed.
        if is_long && text.trim_start().starts_with(['{', '[']) {
            return;
        }
        let value = if is_long { None } else { reading.read(text).map(Read::into_value) };
        if is_long || !is_scalar(text) {
            slot.count_text(witness, value.as_ref());
        }
        if value.is_none() && !is_long {
            learned.count_kind(text, to_share);
        }
        learned.learn(&value.unwrap_or_else(|| stand_in(text)), witness, bounds.work, to_share);
    }
}

impl ResultListener for Shapes {
    fn answered(&self, tool: &PermittedTool, result: &CallToolResult) {
        let declared = declared::read(tool).output.as_ref();
        let is_text = declared.is_some_and(|schema| schema.is_text);
        let says_all = declared.is_some_and(|schema| !schema.is_text && !schema.is_open);
        if result.is_error == Some(true) || !self.is_on() || says_all {
            return;
        }
        let slot = self.slot(&Key::of(tool, tool.caller()));
        let witness = witness(tool.caller());
        match slot.next_look(witness) {
            Some(bounds) if is_text => self.look_at_text(&slot, result, bounds),
            Some(bounds) => {
                let reading = Reading::of(tool, || slot.texts_for(witness));
                self.look(&slot, result, &reading, witness, bounds);
                self.recount(&slot);
            }
            None => {}
        }
    }
}

/// The witness that `caller` is: the same for all clients of a subject, in any process.
pub(super) fn witness(caller: &Caller) -> Witness {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_many_places_give_way_the_longest_unused_first() {
        let shapes = Shapes::new(true);
        let key = |n: u8| Key { version: [n; 16], audience: Audience::Everyone };
        let value: Value = (0..100).map(|n| (format!("a{n}"), json!([{"b": 1}, {"c": [1]}]))).collect();
        let learn = |n: u8| {
            let slot = shapes.slot(&key(n));
            slot.lock().learn(&value, Witness::new(1), 10_000, false);
            shapes.recount(&slot);
            slot.nodes()
        };
        let each = learn(0);
        assert!(each > 400, "{each}");
        let most = u8::try_from(MOST_NODES / each).unwrap();
        (1..most).for_each(|n| _ = learn(n));
        assert!(shapes.known(&key(0)).is_some(), "all fit, and it was used again");
        learn(most);
        let all: usize = shapes.slots().iter().map(|(_, slot)| slot.nodes()).sum();
        assert!(all <= MOST_NODES && all == shapes.nodes.load(Ordering::Relaxed), "{all}");
        assert!(shapes.unused(&key(0)).is_some() && shapes.unused(&key(most)).is_some());
        assert!(shapes.unused(&key(1)).is_none());
    }
}
