//! Parameters of an operation, of any version, without their names as arguments.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gatewright_core::HOP_BY_HOP;
use serde_json::Value;

use super::{
    context::{Context, Version},
    media,
    sources::{Node, clipped},
    words::{plain, sentences},
};
use crate::{Location, Parameter, PathPart, Style};

/// Most parameters of an operation.
const MOST: usize = 1_000;
/// Longest description of a parameter, in characters.
pub(super) const DESCRIPTION: usize = 300;
/// Members of an object that is a parameter, at most.
const MOST_MEMBERS: usize = 500;
/// Work of reading a parameter without its description; see [`Context::spend`].
const PARAMETER_WORK: usize = 200;
/// Longest example of a parameter, in bytes of JSON.
const LONGEST_EXAMPLE: usize = 120;

/// Parameters by where they go.
#[derive(Default)]
pub(super) struct Parameters<'d> {
    /// Those outside the body.
    pub(super) outside: Vec<Outside<'d>>,
    /// `in: body` of Swagger 2.0.
    pub(super) body: Option<Node<'d>>,
    /// `in: formData` of Swagger 2.0.
    pub(super) form: Vec<Node<'d>>,
}

/// A parameter outside the body.
pub(super) struct Outside<'d> {
    /// The parameter, whose argument has no name yet.
    pub(super) parameter: Parameter,
    /// Its schema, if it has one.
    pub(super) schema: Option<Node<'d>>,
    pub(super) description: String,
    pub(super) deprecated: bool,
    pub(super) example: Option<&'d Value>,
}

/// Reads the parameters of an operation and its path.
pub(super) fn read<'d>(context: &Context<'d>, item: Node<'d>, operation: Node<'d>) -> Parameters<'d> {
    let mut nodes: Vec<(Node<'d>, &'d str, &'d str)> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let lists = [item, operation].into_iter().filter_map(|of| of.get("parameters"));
    for given in lists.flat_map(Node::items) {
        // One that is listed many times is looked up each time.
        context.spend(PARAMETER_WORK);
        let Some(node) = context.resolved(given) else { continue };
        let (Some(name), Some(location)) = (node.text("name"), node.text("in")) else {
            context.find(given, "a parameter needs `name` and `in`");
            continue;
        };
        if !context.is_short(given, name) || !context.is_short(given, location) {
            continue;
        }
        context.spend(name.len() + location.len());
        // A parameter of the operation replaces that of the path.
        match places.get(&(name, location)) {
            Some(known) => nodes[*known].0 = node,
            None if nodes.len() < MOST => {
                places.insert((name, location), nodes.len());
                nodes.push((node, name, location));
            }
            None => context.find(given, format!("only the first {MOST} parameters are read")),
        }
    }
    let mut parameters = Parameters::default();
    for (node, name, location) in nodes {
        let location = match location {
            "path" => Location::Path,
            "query" => Location::Query,
            "querystring" => Location::QueryString,
            "header" if is_ignored(name) => continue,
            "header" if is_of_connection(name) => {
                context.find(node, format!("the gateway sets the header `{}` itself", clipped(name)));
                continue;
            }
            "header" => Location::Header,
            "cookie" => Location::Cookie,
            "body" => {
                parameters.body = Some(node);
                continue;
            }
            "formData" => {
                parameters.form.push(node);
                continue;
            }
            other => {
                context.find(node, format!("there is no place `{}` for a parameter", clipped(other)));
                continue;
            }
        };
        parameters.outside.extend(outside(context, node, name, location));
    }
    parameters
}

/// Headers that OpenAPI describes elsewhere.
fn is_ignored(name: &str) -> bool {
    ["accept", "content-type", "authorization"].iter().any(|header| name.eq_ignore_ascii_case(header))
}

/// Headers that belong to the connection, or that other parameters make up.
fn is_of_connection(name: &str) -> bool {
    let mut own = ["host", "content-length", "accept-encoding", "cookie"].iter().chain(&HOP_BY_HOP);
    own.any(|header| name.eq_ignore_ascii_case(header))
}

fn outside<'d>(
    context: &Context<'d>,
    node: Node<'d>,
    name: &'d str,
    location: Location,
) -> Option<Outside<'d>> {
    let description = node.text("description").unwrap_or_default();
    context.spend(PARAMETER_WORK + description.len());
    let is_swagger = context.version == Version::Swagger;
    let content = node.get("content").and_then(|content| content.members().next());
    let content = content.filter(|_| !is_swagger);
    let schema = match (is_swagger, content) {
        (true, _) => Some(node),
        (false, Some((_, media))) => media.get("schema"),
        (false, None) => node.get("schema"),
    };
    let (style, explode) = match is_swagger {
        true => collection_format(context, node, location),
        false => style(context, node, location),
    };
    let media_type = match (content, location) {
        (Some((media_type, _)), _) => Some(context.own(node, media_type)?),
        (None, Location::QueryString) => Some("application/x-www-form-urlencoded".into()),
        (None, _) => None,
    };
    let example = example(context, node).or_else(|| content.and_then(|(_, media)| example(context, media)));
    Some(Outside {
        parameter: Parameter {
            argument: "".into(),
            name: context.own(node, name)?,
            location,
            style,
            explode,
            allow_reserved: node.is("allowReserved"),
            required: location == Location::Path || node.is("required"),
            content: media_type,
            first: schema.and_then(|schema| first(context, schema, description)),
            members: match (style, explode, schema) {
                (Style::Form | Style::Cookie, true, Some(schema)) => members(context, schema),
                _ => Box::default(),
            },
        },
        schema,
        description: sentences(&plain(description), DESCRIPTION).to_owned(),
        deprecated: node.is("deprecated"),
        example: example.filter(|example| super::json::is_shorter(example, LONGEST_EXAMPLE)),
    })
}

/// Names of the members that a schema describes, and those of its `allOf`.
pub(super) fn members<'d>(context: &Context<'d>, schema: Node<'d>) -> Box<[Arc<str>]> {
    let Ok(schema) = context.sources.resolve(schema) else { return Box::default() };
    let parts = schema.get("allOf").into_iter().flat_map(|all| all.items().collect::<Vec<_>>());
    let parts = parts.filter_map(|part| context.sources.resolve(part).ok());
    let named = std::iter::once(schema).chain(parts).filter_map(|part| part.get("properties"));
    named
        .flat_map(|all| all.members().collect::<Vec<_>>())
        .map(|(name, _)| name.into())
        .take(MOST_MEMBERS)
        .collect()
}

/// The number at which a parameter that counts begins.
fn first<'d>(context: &Context<'d>, schema: Node<'d>, description: &str) -> Option<u64> {
    let schema = context.resolved(schema)?;
    let number = |key| schema.value.get(key).and_then(Value::as_u64);
    let start = &description[..description.floor_char_boundary(LONGEST_EXAMPLE)].to_ascii_lowercase();
    let is_zero = || {
        ["zero-based", "zero based", "0-based", "0 based", "(0..n)"].iter().any(|words| start.contains(words))
    };
    number("default")
        .or_else(|| number("minimum").filter(|least| *least <= 1))
        .or_else(|| is_zero().then_some(0))
}

/// The first example of a parameter or a media type.
pub(super) fn example<'d>(context: &Context<'d>, node: Node<'d>) -> Option<&'d Value> {
    let first = || {
        let (_, example) = node.get("examples")?.members().next()?;
        let example = context.sources.resolve(example).ok()?;
        example.value.get("dataValue").or_else(|| example.value.get("value"))
    };
    node.value.get("example").or_else(first)
}

fn style(context: &Context<'_>, node: Node<'_>, location: Location) -> (Style, bool) {
    let default = match location {
        Location::Path | Location::Header => Style::Simple,
        Location::Query | Location::QueryString | Location::Cookie => Style::Form,
    };
    let style = node.text("style").map_or(default, |name| {
        named_style(name, location).unwrap_or_else(|| {
            let problem = format!("there is no style `{}` in this place; the default is used", clipped(name));
            context.find(node, problem);
            default
        })
    });
    let explode = node.value.get("explode").and_then(Value::as_bool);
    (style, explode.unwrap_or(matches!(style, Style::Form | Style::Cookie)))
}

fn named_style(name: &str, location: Location) -> Option<Style> {
    let style = match name {
        "simple" => Style::Simple,
        "label" => Style::Label,
        "matrix" => Style::Matrix,
        "form" => Style::Form,
        "spaceDelimited" => Style::SpaceDelimited,
        "pipeDelimited" => Style::PipeDelimited,
        "deepObject" => Style::DeepObject,
        "cookie" => Style::Cookie,
        _ => return None,
    };
    let fits = match location {
        Location::Path => matches!(style, Style::Simple | Style::Label | Style::Matrix),
        Location::Header => style == Style::Simple,
        Location::Cookie => matches!(style, Style::Form | Style::Cookie),
        Location::Query | Location::QueryString => {
            matches!(style, Style::Form | Style::SpaceDelimited | Style::PipeDelimited | Style::DeepObject)
        }
    };
    fits.then_some(style)
}

/// The style that a `collectionFormat` of Swagger 2.0 stands for.
pub(super) fn collection_format(context: &Context<'_>, node: Node<'_>, location: Location) -> (Style, bool) {
    let comma = match location {
        Location::Path | Location::Header => Style::Simple,
        Location::Query | Location::QueryString | Location::Cookie => Style::Form,
    };
    match node.text("collectionFormat") {
        None | Some("csv") => (comma, false),
        Some("multi") => (Style::Form, true),
        Some("ssv") => (Style::SpaceDelimited, false),
        Some("tsv") => (Style::TabDelimited, false),
        Some("pipes") => (Style::PipeDelimited, false),
        Some(other) => {
            context.find(node, format!("there is no `collectionFormat` {}", clipped(other)));
            (comma, false)
        }
    }
}

/// An encoding of a field (OpenAPI 3.x), where it names a style.
pub(super) fn encoding_style(context: &Context<'_>, encoding: Node<'_>) -> Option<(Style, bool)> {
    let names_one = ["style", "explode", "allowReserved"].iter().any(|key| encoding.get(key).is_some());
    names_one.then(|| style(context, encoding, Location::Query))
}

/// The parts of a path template. Parameters that the document forgot are added, and those that the path lacks are taken out.
/// Nothing where the template cannot be read.
pub(super) fn path_parts<'d>(
    context: &Context<'d>,
    operation: Node<'d>,
    template: &str,
    parameters: &mut Vec<Outside<'d>>,
) -> Option<Box<[PathPart]>> {
    // Some documents tell operations of one path apart by a fragment, which is never sent.
    let template = template.split('#').next().unwrap_or_default();
    if template.contains('?') {
        context.find(operation, "the path has a query; describe its fields as parameters");
        return None;
    }
    let mut names: Vec<Result<&str, &str>> = Vec::new();
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else {
            context.find(operation, "the path has a brace that is not closed");
            return None;
        };
        names.push(Err(&rest[..open]));
        names.push(Ok(&rest[open + 1..open + close]));
        rest = &rest[open + close + 1..];
    }
    names.push(Err(rest));
    let used: HashSet<&str> = names.iter().filter_map(|name| name.ok()).collect();
    parameters.retain(|one| {
        let is_used = one.parameter.location != Location::Path || used.contains(&*one.parameter.name);
        if !is_used {
            let problem = format!("the path has no parameter `{}`", clipped(&one.parameter.name));
            context.find(operation, problem);
        }
        is_used
    });
    let is_path = |(_, one): &(usize, &Outside<'_>)| one.parameter.location == Location::Path;
    let mut places: HashMap<Arc<str>, usize> = parameters
        .iter()
        .enumerate()
        .filter(is_path)
        .map(|(at, one)| (Arc::clone(&one.parameter.name), at))
        .collect();
    let mut parts: Vec<PathPart> = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        match name {
            Err(text) => {
                let text = match at == 0 && !text.starts_with('/') {
                    true => format!("/{text}"),
                    false => text.to_owned(),
                };
                if !text.is_empty() {
                    parts.push(PathPart::Literal(text.into()));
                }
            }
            Ok(name) => {
                let place = places.get(name).copied().unwrap_or_else(|| {
                    let problem = format!("the parameter `{}` of the path is not described", clipped(name));
                    context.find(operation, problem);
                    context.spend(PARAMETER_WORK);
                    parameters.push(undescribed(name));
                    places.insert(name.into(), parameters.len() - 1);
                    parameters.len() - 1
                });
                parts.push(PathPart::Parameter(place));
            }
        }
    }
    Some(parts.into())
}

fn undescribed<'d>(name: &str) -> Outside<'d> {
    Outside {
        parameter: Parameter {
            argument: "".into(),
            name: name.into(),
            location: Location::Path,
            style: Style::Simple,
            explode: false,
            allow_reserved: false,
            required: true,
            content: None,
            first: None,
            members: Box::default(),
        },
        schema: None,
        description: String::new(),
        deprecated: false,
        example: None,
    }
}

/// Word for a place, in front of the name of an argument.
pub(super) fn place_word(location: Location) -> &'static str {
    match location {
        Location::Path => "path",
        Location::Query | Location::QueryString => "query",
        Location::Header => "header",
        Location::Cookie => "cookie",
    }
}

/// Returns `true` if the values of a parameter are texts of any kind: it has a media type that is not JSON.
pub(super) fn is_text(parameter: &Parameter) -> bool {
    let content = parameter.content.as_deref().map(media::essence);
    content.is_some_and(|essence| !media::is_json(&essence) && parameter.location != Location::QueryString)
}
