//! Operations of a document, found in its paths, and made into tools.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use gatewright_core::{
    rmcp::model::{JsonObject, Tool},
    value_bytes,
};
use http::Method;
use serde_json::{Map, Value};

use super::{
    body::{self, Parts, ReadBody},
    bounded::Schemas,
    context::{Context, Version},
    effects::Effects,
    input::{Argument, ArgumentNames, ArgumentSchema, Input, Open},
    json::is_shorter,
    parameters::{self, Outside},
    responses::{self, Output},
    security::{self, Keys, Schemes, Secured},
    servers,
    sources::{ByNode, Identity, Node, clipped},
    words,
};
use crate::{Body, BodyArguments, BodyField, Location, Operation, ResponseShape, Server};

/// Most operations of a document.
const MOST_OPERATIONS: usize = 20_000;
/// Longest path, in bytes.
const LONGEST_PATH: usize = 2_000;
/// Longest name of a method, in bytes.
const LONGEST_METHOD: usize = 100;
/// Longest description of a tool, in characters.
const DESCRIPTION: usize = 300;
/// Longest title of a tool.
const TITLE: usize = 100;
/// Most tags of an operation that are read, and bytes of one.
const MOST_TAGS: usize = 10;
const LONGEST_TAG: usize = 60;
/// Longest example of all arguments, in bytes of JSON.
const LONGEST_EXAMPLE: usize = 1_000;
/// Work of reading an operation without its parts; see [`Context::spend`].
const OPERATION_WORK: usize = 1_000;
/// Memory of all input schemas, and of all output schemas, in bytes.
const ALL_INPUTS: u64 = 192 << 20;
const ALL_OUTPUTS: u64 = 96 << 20;

/// An operation in its document.
pub(super) struct Found<'d> {
    pub(super) path: &'d str,
    pub(super) method: Method,
    pub(super) id: Option<&'d str>,
    pub(super) tags: Vec<&'d str>,
    item: Node<'d>,
    node: Node<'d>,
}

/// All operations of a document.
pub(super) fn find<'d>(context: &Context<'d>, root: Node<'d>) -> Vec<Found<'d>> {
    const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];
    let mut all = Vec::new();
    for (path, given) in root.get("paths").into_iter().flat_map(Node::members) {
        if path.starts_with("x-") {
            continue;
        }
        if path.len() > LONGEST_PATH {
            context.find(given, format!("the path is longer than {LONGEST_PATH} bytes"));
            continue;
        }
        let Some(item) = context.resolved(given) else { continue };
        let known = item.members().filter(|(key, _)| METHODS.contains(key));
        let known = known.map(|(key, node)| (Cow::Owned(key.to_ascii_uppercase()), node));
        let additional = item.get("additionalOperations").into_iter().flat_map(Node::members);
        let additional = additional.map(|(method, node)| (Cow::Borrowed(method), node));
        for (name, node) in known.chain(additional) {
            let short = name.as_bytes().get(..=LONGEST_METHOD).is_none();
            let Some(method) = short.then(|| Method::from_bytes(name.as_bytes()).ok()).flatten() else {
                context.find(node, format!("`{}` is no HTTP method", clipped(&name)));
                continue;
            };
            if !node.value.is_object() {
                context.find(node, "an operation is an object");
                continue;
            }
            // Meant for the documentation only.
            if node.value.get("x-mcp-enabled") == Some(&Value::Bool(false)) {
                continue;
            }
            if all.len() == MOST_OPERATIONS {
                context.find(node, format!("only the first {MOST_OPERATIONS} operations are read"));
                return all;
            }
            let tags =
                node.get("tags").into_iter().flat_map(Node::items).filter_map(|tag| tag.value.as_str());
            all.push(Found {
                path,
                method,
                id: node.text("operationId").filter(|id| context.is_short(node, id)),
                tags: tags.filter(|tag| tag.len() <= LONGEST_TAG).take(MOST_TAGS).collect(),
                item,
                node,
            });
        }
    }
    if context.is_spent() {
        context.find(
            root,
            "the operations from here on are left out: their paths share parts that take too long to read",
        );
    }
    all
}

/// Makes tools of operations.
pub(super) struct Tools<'c, 'd> {
    context: &'c Context<'d>,
    root: Node<'d>,
    schemas: Schemas<'c, 'd>,
    schemes: &'c Schemes,
    /// Parameters that carry keys, by the names of their security schemes.
    keys: Keys,
    security: Secured,
    /// Requirements of operations, which may be shared.
    known_security: ByNode<Secured>,
    servers: Arc<[Server]>,
    /// Servers of paths and operations, which may be shared.
    known_servers: ByNode<Option<Arc<[Server]>>>,
    /// Servers by their schemes (Swagger 2.0).
    swagger_servers: HashMap<Vec<&'static str>, Arc<[Server]>>,
    limits: Limits,
    /// Parameters that the gateway sends itself.
    sent: &'c [(Location, String)],
    /// Output schemas, which many operations share.
    outputs: SharedSchemas<(bool, Vec<Identity>)>,
    /// Input schemas, by the digest of what they are made from.
    inputs: SharedSchemas<[u8; 32]>,
    inputs_size: u64,
    outputs_size: u64,
}

/// Schemas by what they are made from; none where they are too large.
type SharedSchemas<K> = HashMap<K, Option<Arc<JsonObject>>>;

/// Most bytes of a schema.
#[derive(Clone, Copy)]
struct Limits {
    input: usize,
    output: usize,
}

impl Limits {
    /// The limits for a document of so many tools: the more, the less for each, in few steps, so that tools stay as they are when some are
    /// added.
    fn of(tools: usize) -> Self {
        match tools {
            0..=300 => Self { input: 64 << 10, output: 16 << 10 },
            301..=3_000 => Self { input: 32 << 10, output: 8 << 10 },
            _ => Self { input: 16 << 10, output: 4 << 10 },
        }
    }
}

impl<'c, 'd> Tools<'c, 'd> {
    /// Makes tools of about `count` operations.
    pub(super) fn new(
        context: &'c Context<'d>,
        root: Node<'d>,
        schemes: &'c Schemes,
        sent: &'c [(Location, String)],
        count: usize,
    ) -> Self {
        let servers = match context.version {
            Version::Swagger => servers::of_swagger(context, &servers::schemes(root), root),
            Version::V30 | Version::V31 => {
                root.get("servers").and_then(|given| servers::read(context, given)).unwrap_or_default()
            }
        };
        let keys = security::keys(schemes);
        let security = root.get("security").map(|given| Secured::read(context, given, schemes, &keys));
        Self {
            context,
            root,
            schemas: Schemas::new(context),
            schemes,
            keys,
            security: security.unwrap_or_default(),
            known_security: ByNode::default(),
            servers,
            known_servers: ByNode::default(),
            swagger_servers: HashMap::new(),
            limits: Limits::of(count),
            sent,
            outputs: HashMap::new(),
            inputs: HashMap::new(),
            inputs_size: 0,
            outputs_size: 0,
        }
    }

    /// Servers of the document.
    pub(super) fn servers(&self) -> Arc<[Server]> {
        self.servers.clone()
    }

    /// The tool called `name` of an operation; none, and a finding, where none can be made.
    pub(super) fn make(&mut self, found: &Found<'d>, name: &str) -> Option<(Operation, Tool)> {
        let context = self.context;
        let texts =
            [found.node, found.item].into_iter().flat_map(|of| [of.text("summary"), of.text("description")]);
        context.spend(OPERATION_WORK + texts.flatten().map(str::len).sum::<usize>());
        let made = if context.is_spent() { None } else { self.read(found, name) };
        // What was read when the work was spent lacks parts.
        if context.is_spent() {
            let problem = "the operation is left out: the operations before it share schemas that take too long to read; see `include`";
            context.find(found.node, problem);
            return None;
        }
        made
    }

    fn read(&mut self, found: &Found<'d>, name: &str) -> Option<(Operation, Tool)> {
        let context = self.context;
        let (node, item) = (found.node, found.item);
        let Secured { security, keys } = self.secured(node);
        let own_servers = self.own_servers(node, item);
        let mut parameters = parameters::read(context, item, node);
        parameters.outside.retain(|one| {
            let location = one.parameter.location;
            let name = match location {
                Location::Header => one.parameter.name.to_ascii_lowercase().into(),
                _ => one.parameter.name.clone(),
            };
            let is_sent = self.sent.iter().any(|(other, sent)| *other == location && **sent == *name);
            !is_sent && !keys.contains(&(location, name))
        });
        let path = parameters::path_parts(context, node, found.path, &mut parameters.outside)?;
        let body = body::read(context, self.root, node, &parameters);
        let (input, body) = arguments(&mut parameters.outside, body);
        let written = self.input_schema(found, &input)?;
        let responses = responses::read(context, self.root, node, found.method == Method::HEAD);
        let output =
            responses.output.and_then(|output| Some((output.shape, self.output_schema(found, &output)?)));
        let effects = Effects::of(node, &found.method, found.id.unwrap_or_default(), found.path);

        let mut tool = Tool::new(name.to_owned(), description(found, name), written);
        let title = words::plain(node.text("summary").unwrap_or_default());
        let title = words::sentences(&title, TITLE).trim_end_matches('.');
        tool.title = (!title.is_empty()).then(|| title.to_owned());
        tool.annotations = Some(effects.annotations());
        let shape = output.as_ref().map_or(ResponseShape::Unknown, |(shape, _)| *shape);
        tool.output_schema = output.map(|(_, schema)| schema);
        let operation = Operation {
            tool: name.into(),
            id: found.id.and_then(|id| context.own(node, id)),
            method: found.method.clone(),
            path,
            parameters: parameters.outside.into_iter().map(|one| one.parameter).collect(),
            body,
            responses: responses.success.into(),
            shape,
            security,
            own_servers: own_servers.is_some(),
            links: responses.links,
            servers: own_servers.unwrap_or_else(|| self.servers.clone()),
            idempotent: effects.idempotent,
        };
        Some((operation, tool))
    }

    /// The requirements of an operation: its own, or else those of the document.
    fn secured(&mut self, node: Node<'d>) -> Secured {
        let Some(given) = node.get("security") else { return self.security.clone() };
        let (context, schemes, keys) = (self.context, self.schemes, &self.keys);
        let known = self.known_security.entry(given.identity());
        known.or_insert_with(|| Secured::read(context, given, schemes, keys)).clone()
    }

    /// The servers of an operation or its path, if they have some.
    fn own_servers(&mut self, node: Node<'d>, item: Node<'d>) -> Option<Arc<[Server]>> {
        let (context, root) = (self.context, self.root);
        match context.version {
            Version::Swagger => node.get("schemes").map(|_| {
                let schemes = servers::schemes(node);
                let known = self.swagger_servers.entry(schemes);
                known.or_insert_with_key(|schemes| servers::of_swagger(context, schemes, root)).clone()
            }),
            Version::V30 | Version::V31 => [node, item].into_iter().find_map(|of| {
                let given = of.get("servers")?;
                let known = self.known_servers.entry(given.identity());
                known.or_insert_with(|| servers::read(context, given)).clone()
            }),
        }
    }

    fn input_schema(&mut self, found: &Found<'d>, input: &Input<'d>) -> Option<Arc<JsonObject>> {
        let key = input.digest();
        if let Some(known) = self.inputs.get(&key) {
            return known.clone();
        }
        let limit = self.limits.input;
        let written = input.schema(&self.schemas, limit).filter(|_| self.inputs_size < ALL_INPUTS);
        let schema = match written {
            Some(written) => {
                if written.is_cut {
                    self.find_cut(found, "input", limit);
                }
                self.inputs_size += memory(&written.schema);
                Some(Arc::new(written.schema))
            }
            None => {
                self.context.find(found.node, "the operation is left out: its input schema is too large");
                None
            }
        };
        self.inputs.insert(key, schema.clone());
        schema
    }

    fn output_schema(&mut self, found: &Found<'d>, output: &Output<'d>) -> Option<Arc<JsonObject>> {
        let identity = output.identity();
        if let Some(known) = self.outputs.get(&identity) {
            return known.clone();
        }
        let limit = self.limits.output;
        let written = output.schema(&self.schemas, limit).filter(|_| self.outputs_size < ALL_OUTPUTS);
        let schema = match written {
            Some(written) => {
                if written.is_cut {
                    self.find_cut(found, "output", limit);
                }
                self.outputs_size += memory(&written.schema);
                Some(Arc::new(written.schema))
            }
            None => {
                self.context.find(found.node, "the tool has no output schema: it is too large");
                None
            }
        };
        self.outputs.insert(identity, schema.clone());
        schema
    }

    fn find_cut(&self, found: &Found<'d>, which: &str, limit: usize) {
        let problem = format!(
            "the {which} schema is larger than {} KiB, so its deeper parts are left out",
            limit >> 10
        );
        self.context.find(found.node, problem);
    }
}

/// The memory of a schema, in bytes.
fn memory(schema: &JsonObject) -> u64 {
    schema.iter().map(|(key, value)| key.len() as u64 + value_bytes(value)).sum()
}

/// The description of a tool. Tags that nothing else says are a part of it, so that a search finds them.
fn description(found: &Found<'_>, name: &str) -> String {
    let of = |node: Node<'_>| {
        let text = |key: &str| node.text(key).unwrap_or_default();
        words::about(text("summary"), text("description"), DESCRIPTION)
    };
    let mut about = of(found.node);
    if about.is_empty() {
        about = of(found.item);
    }
    if about.is_empty() {
        about = format!("{} {}", found.method, clipped(found.path));
    }
    let letters = |text: &str| words::letters(text).collect::<String>();
    let said = letters(&format!("{name} {} {about}", found.path));
    let more: Vec<&str> = found
        .tags
        .iter()
        .copied()
        .filter(|tag| !said.contains(letters(tag).trim_end_matches('s')))
        .take(3)
        .collect();
    if !more.is_empty() {
        if !about.ends_with(['.', '!', '?']) {
            about.push('.');
        }
        about = format!("{about} Tags: {}.", more.join(", "));
    }
    match found.node.is("deprecated") {
        true => format!("Deprecated. {about}"),
        false => about,
    }
}

/// Parameters and the body, side by side. Names that clash are told apart: a parameter of the path keeps its own, a field of the body
/// does so last.
fn arguments<'d>(outside: &mut [Outside<'d>], body: Option<ReadBody<'d>>) -> (Input<'d>, Option<Body>) {
    let mut names = ArgumentNames::default();
    let order = [Location::Path, Location::Query, Location::QueryString, Location::Header, Location::Cookie];
    for location in order {
        for one in outside.iter_mut().filter(|one| one.parameter.location == location) {
            one.parameter.argument = names.take(&one.parameter.name, parameters::place_word(location));
        }
    }
    let mut input = Input { arguments: Vec::new(), open: Open::Closed, choices: Vec::new(), example: None };
    input.arguments.extend(outside.iter().map(|one| Argument {
        name: Arc::clone(&one.parameter.argument),
        schema: match one.schema {
            _ if parameters::is_text(&one.parameter) => ArgumentSchema::Text,
            Some(schema) => ArgumentSchema::Of(schema),
            None => ArgumentSchema::Text,
        },
        description: (!one.description.is_empty()).then(|| one.description.clone()),
        required: one.parameter.required,
        deprecated: one.deprecated,
        example: one.example,
    }));
    let Some(body) = body else { return (input, None) };
    let example = body.example;
    let arguments = match body.parts {
        Parts::Whole(schema) => {
            let name = names.take("body", "request");
            input.example = whole_example(outside, example, &name);
            input.arguments.push(Argument {
                name: Arc::clone(&name),
                schema,
                description: Some(body.description),
                required: body.required,
                deprecated: false,
                example: None,
            });
            BodyArguments::Whole(name)
        }
        Parts::Fields { fields, open, choices } => {
            let named: Vec<_> =
                fields.into_iter().map(|field| (names.take(&field.name, "body"), field)).collect();
            input.open = open;
            // An alternative names fields as the document does.
            if named.iter().all(|(name, field)| **name == *field.name) {
                input.choices = choices;
            }
            let is_open = !matches!(open, Open::Closed);
            let pairs: Vec<_> = named.iter().map(|(name, field)| (&*field.name, &**name)).collect();
            let arguments = example.and_then(|example| body::example_arguments(example, &pairs, is_open));
            input.example = arguments.and_then(|arguments| with_parameters(outside, arguments));
            input.arguments.extend(named.iter().map(|(name, field)| Argument {
                name: Arc::clone(name),
                schema: field.schema,
                description: field.description.clone(),
                required: field.required,
                deprecated: false,
                example: None,
            }));
            let fields = named.into_iter().map(|(argument, field)| BodyField {
                argument,
                name: field.name,
                encoding: field.encoding,
            });
            BodyArguments::Fields { fields: fields.collect(), open: is_open }
        }
    };
    let body = Body { media_type: body.media_type, kind: body.kind, arguments, required: body.required };
    (input, Some(body))
}

fn whole_example(outside: &[Outside<'_>], example: Option<&Value>, name: &str) -> Option<Value> {
    let mut arguments = Map::new();
    arguments.insert(name.to_owned(), example?.clone());
    with_parameters(outside, arguments)
}

/// An example of all arguments: `arguments`, which are those of the body, and examples of the required parameters. None where one of those has
/// no example, or all is too long.
fn with_parameters(outside: &[Outside<'_>], body: Map<String, Value>) -> Option<Value> {
    let mut arguments = Map::new();
    for one in outside.iter().filter(|one| one.parameter.required) {
        let schema = one.schema.map(|schema| schema.value);
        let of_schema = || {
            let schema = schema?;
            let first = |key: &str| schema.get(key).and_then(|all| all.get(0));
            schema
                .get("example")
                .or_else(|| first("examples"))
                .or_else(|| schema.get("default"))
                .or_else(|| first("enum"))
        };
        let example =
            one.example.or_else(of_schema).filter(|example| is_shorter(example, LONGEST_EXAMPLE))?;
        arguments.insert(one.parameter.argument.to_string(), example.clone());
    }
    arguments.extend(body);
    let example = Value::Object(arguments);
    is_shorter(&example, LONGEST_EXAMPLE).then_some(example)
}
