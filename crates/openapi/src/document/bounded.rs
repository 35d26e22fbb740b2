//! Schemas of a bounded size: those that are too large are cut off at a depth.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::Value;

use super::{
    context::Context,
    definitions::DefinitionNames,
    json::object,
    schema::{Direction, Pass},
};

/// Levels at which a schema that is too large may be cut off.
const DEEPEST: usize = 24;

/// Writes schemas.
pub(super) struct Schemas<'c, 'd> {
    pub(super) context: &'c Context<'d>,
    names: DefinitionNames,
}

/// A schema within its limit.
pub(super) struct Written {
    pub(super) schema: JsonObject,
    /// Parts of it are cut off.
    pub(super) is_cut: bool,
}

impl<'c, 'd> Schemas<'c, 'd> {
    pub(super) fn new(context: &'c Context<'d>) -> Self {
        Self { context, names: DefinitionNames::default() }
    }

    /// A schema of at most about `limit` bytes, whose root `root` writes; none where the root alone is larger.
    ///
    /// One that is larger is written again, as deep as there is room. No try takes longer than the limit allows.
    pub(super) fn write(
        &self,
        direction: Direction,
        limit: usize,
        root: &dyn Fn(&mut Pass<'_, 'd>) -> Vec<(String, Value)>,
    ) -> Option<Written> {
        let written = |deepest, terse| {
            let mut pass = Pass::new(self.context, &self.names, direction, deepest, terse, limit);
            let mut members = root(&mut pass);
            if let Some(definitions) = pass.definitions() {
                members.push(("$defs".to_owned(), Value::Object(definitions)));
            }
            self.context.spend(pass.size());
            (!pass.is_over()).then(|| Written { schema: object(members), is_cut: pass.is_cut })
        };
        if let Some(whole) = written(usize::MAX, false) {
            return Some(whole);
        }
        let deepest =
            |terse| (0..DEEPEST).map_while(|deepest| Some((deepest, written(deepest, terse)?))).last();
        match direction {
            // Callers need the descriptions of arguments more than the parts of parts.
            Direction::Input => deepest(false).map(|(_, cut)| cut).or_else(|| written(0, true)),
            // Readers of results see the values themselves, and need to know where they are.
            Direction::Output => written(usize::MAX, true).or_else(|| {
                let (deepest, cut) = deepest(true)?;
                Some(written(deepest, false).unwrap_or(cut))
            }),
        }
    }
}
