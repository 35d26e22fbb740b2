//! Discriminators of OpenAPI in the terms of JSON Schema: the property by which alternatives are told apart has a fixed value in each.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    context::Context,
    json::object,
    sources::{ByNode, Node, NodeSet, reference},
};

/// Parts of an `allOf`, one within another, that are looked through for the property.
const DEEPEST: usize = 8;

/// Most values of a mapping that are read.
const MOST_VALUES: usize = 300;

/// A discriminator.
pub(super) struct Discriminator<'d> {
    property: &'d str,
    /// Values of the mapping, by the schemas that they stand for.
    values: ByNode<Vec<&'d str>>,
}

impl<'d> Discriminator<'d> {
    /// The discriminator of a schema, if it has one.
    pub(super) fn of(context: &Context<'d>, node: Node<'d>) -> Option<Self> {
        let discriminator = node.get("discriminator")?;
        // A text in Swagger 2.0, where there are no alternatives.
        let property = discriminator.text("propertyName")?;
        let mut values: ByNode<Vec<&str>> = ByNode::default();
        for (value, to) in discriminator.get("mapping").into_iter().flat_map(Node::members).take(MOST_VALUES)
        {
            let Some(text) = to.value.as_str() else { continue };
            // A name of a schema, or a reference to one.
            let by_name = format!("#/components/schemas/{text}");
            let found = context.sources.target(to, &by_name).or_else(|_| context.sources.target(to, text));
            // Bundled documents often keep mappings to files that are no longer there. An alternative has its own name, then.
            if let Ok(found) = found.and_then(|found| context.sources.resolve(found)) {
                values.entry(found.identity()).or_default().push(value);
            }
        }
        Some(Self { property, values })
    }

    /// Returns the keywords that pin an alternative to its value. None where it is no reference, or has the values itself.
    pub(super) fn pin<'p>(&'p self, context: &Context<'d>, alternative: Node<'d>) -> Option<Pin<'p>> {
        let written = reference(alternative.value)?;
        let target = context.sources.resolve(alternative).ok()?;
        if has_values(context, target, self.property, 0, &mut NodeSet::default()) {
            return None;
        }
        let values = match self.values.get(&target.identity()) {
            None => Cow::Owned(vec![written.rsplit('/').next()?]),
            Some(values) => Cow::Borrowed(values.as_slice()),
        };
        Some(Pin { property: self.property, values })
    }
}

/// A property and the values that it has in an alternative.
pub(super) struct Pin<'p> {
    property: &'p str,
    values: Cow<'p, [&'p str]>,
}

impl Pin<'_> {
    /// About the bytes of its members.
    pub(super) fn size(&self) -> usize {
        let values = self.values.iter().map(|value| value.len() + 3).sum::<usize>();
        60 + 2 * self.property.len() + values
    }

    /// Members to add to the alternative, so that only objects with its value fit.
    pub(super) fn members(&self) -> Map<String, Value> {
        let value = match &*self.values {
            [one] => ("const", Value::from(*one)),
            several => ("enum", several.iter().map(|value| Value::from(*value)).collect()),
        };
        let pinned = object(vec![(value.0.to_owned(), value.1)]);
        let properties = object(vec![(self.property.to_owned(), Value::Object(pinned))]);
        object(vec![
            ("properties".to_owned(), Value::Object(properties)),
            ("required".to_owned(), Value::Array(vec![self.property.into()])),
        ])
    }
}

/// Returns `true` if the schema itself lists the values of the property. Parts that were `seen` are not looked through again.
fn has_values<'d>(
    context: &Context<'d>,
    node: Node<'d>,
    name: &str,
    depth: usize,
    seen: &mut NodeSet,
) -> bool {
    let Ok(node) = context.sources.resolve(node) else { return false };
    if !seen.insert(node.identity()) {
        return false;
    }
    let property = node.get("properties").and_then(|properties| properties.get(name));
    let property = property.and_then(|property| context.sources.resolve(property).ok());
    if property.is_some_and(|property| property.get("enum").is_some() || property.get("const").is_some()) {
        return true;
    }
    let parts = node.get("allOf").filter(|_| depth < DEEPEST);
    // The base comes first, and few.
    parts.is_some_and(|parts| {
        parts.items().take(3).any(|part| has_values(context, part, name, depth + 1, seen))
    })
}
