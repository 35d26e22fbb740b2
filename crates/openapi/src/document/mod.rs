//! Documents of OpenAPI 3.0, 3.1 and 3.2 and of Swagger 2.0, as operations and tools.
//!
//! Nothing here calls an API or reads a file. A part of a document that cannot be used becomes a finding; the rest is used.
//!
//! ```text
//! text -> parse -> sources (with the documents that it refers to) -> operations::find -> names -> selector
//!      -> operations::Tools: parameters, body (fields), responses, security, servers, effects
//!      -> input and output schemas: bounded, a few passes of schema
//! ```

mod body;
mod bounded;
mod constraints;
mod context;
mod definitions;
mod discriminator;
mod effects;
mod error;
mod fields;
mod input;
mod json;
mod kinds;
mod media;
mod names;
mod node;
mod operations;
mod parameters;
mod parse;
mod parts;
mod responses;
mod room;
mod scan;
mod schema;
mod security;
mod selector;
mod servers;
mod sources;
mod targets;
mod words;
mod work;

use std::{collections::BTreeMap, sync::Arc};

use gatewright_core::rmcp::model::Tool;
use serde_json::Value;

use self::{
    context::{Context, Version},
    names::Named,
    operations::Tools,
    selector::Selected,
    sources::{Node, Sources},
};
pub use self::{
    error::{DocumentError, Finding},
    selector::Selector,
};
use crate::{Location, Operation, SecurityScheme, Server};

/// Longest text of a document about itself, in characters.
const ABOUT: usize = 1_000;

/// A document, read.
#[derive(Debug, Clone)]
pub struct Document {
    /// The title. Empty where there is none.
    pub title: String,
    /// The beginning of its description, as plain text.
    pub about: Option<String>,
    /// Servers of operations that have none of their own. Empty: `/` relative to the document.
    pub servers: Arc<[Server]>,
    /// The chosen operations, in the order of the document.
    pub operations: Vec<Arc<Operation>>,
    /// The tools of the operations, in the same order.
    pub tools: Vec<Tool>,
    /// Security schemes by name.
    pub schemes: BTreeMap<Arc<str>, SecurityScheme>,
    /// Problems with parts of the document.
    pub findings: Vec<Finding>,
}

/// Choice of operations.
#[derive(Debug, Clone, Default)]
pub struct DocumentOptions {
    /// Operations that become tools. Empty, the default: all.
    pub include: Vec<Selector>,
    /// Operations that do not, though `include` has them.
    pub exclude: Vec<Selector>,
    /// Parameters that the gateway sends itself, which are no arguments: places and names, those of headers in lower case.
    pub sent: Vec<(Location, String)>,
}

/// Reads a document in JSON or YAML.
///
/// `fetch` returns the text of another document that this one refers to, by its absolute URL or by its path relative to this document. It
/// decides which may be read. What it refuses becomes a finding.
///
/// # Errors
/// The text cannot be read, or is no document of a supported version.
pub fn read(
    text: &str,
    options: &DocumentOptions,
    fetch: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<Document, DocumentError> {
    let sources = Sources::load(text, fetch)?;
    let root = sources.root();
    let context = Context::new(&sources, version(root)?);
    let all = operations::find(&context, root);
    // Names come from the whole document: they do not depend on the choice.
    let named: Vec<_> =
        all.iter().map(|found| Named { id: found.id, method: &found.method, path: found.path }).collect();
    let names = names::assign(&named);
    let mut used = vec![false; options.include.len() + options.exclude.len()];
    let mut is_chosen = |found: &operations::Found<'_>, tool: &str| {
        let selected =
            Selected { method: &found.method, path: found.path, id: found.id, tool, tags: &found.tags };
        let mut any = |selectors: &[Selector], first: usize| {
            let mut any = false;
            for (at, selector) in selectors.iter().enumerate() {
                if selector.matches(&selected) {
                    used[first + at] = true;
                    any = true;
                }
            }
            any
        };
        let included = any(&options.include, 0) || options.include.is_empty();
        let excluded = any(&options.exclude, options.include.len());
        included && !excluded
    };
    let chosen: Vec<_> = all.iter().zip(&names).filter(|(found, name)| is_chosen(found, name)).collect();
    let schemes = security::schemes(&context, root);
    let mut maker = Tools::new(&context, root, &schemes, &options.sent, chosen.len());
    let (mut operations, mut tools) = (Vec::with_capacity(chosen.len()), Vec::with_capacity(chosen.len()));
    for (found, name) in chosen {
        if let Some((operation, tool)) = maker.make(found, name) {
            operations.push(Arc::new(operation));
            tools.push(tool);
        }
    }
    let servers = maker.servers();
    for (selector, used) in options.include.iter().chain(&options.exclude).zip(used) {
        if !used {
            context.find_anywhere(format!("`{selector}` chooses no operation"));
        }
    }
    if all.is_empty() {
        context.find(root, "the document has no operations");
    }
    let about = root.get("info").and_then(|info| info.text("description")).map(words::plain);
    let about = about.map(|about| words::sentences(&about, ABOUT).to_owned());
    Ok(Document {
        title: servers::title(root),
        about: about.filter(|about| !about.is_empty()),
        servers,
        operations,
        tools,
        schemes,
        findings: context.into_findings(),
    })
}

fn version(root: Node<'_>) -> Result<Version, DocumentError> {
    // YAML reads `3.1` as a number.
    let text = |key: &str| match root.value.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    match (text("openapi"), text("swagger")) {
        (Some(version), _) => match version.split('.').collect::<Vec<_>>().as_slice() {
            ["3", "0", ..] => Ok(Version::V30),
            // A minor version changes nothing that a reader of an earlier one relies on.
            ["3", ..] => Ok(Version::V31),
            _ => Err(DocumentError::Version(sources::clipped(&version).to_owned())),
        },
        (None, Some(version)) if version.split('.').next() == Some("2") => Ok(Version::Swagger),
        (None, Some(version)) => Err(DocumentError::Version(sources::clipped(&version).to_owned())),
        (None, None) => Err(DocumentError::NotOpenApi),
    }
}
