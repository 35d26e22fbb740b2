//! Operations of an HTTP API: all that a call needs to know of them, whatever version of OpenAPI the document is in.
//!
//! Documents are read elsewhere; nothing here knows JSON, schemas or HTTP clients. Texts are as the document has them, not yet escaped.

use std::sync::Arc;

use http::Method;

/// An operation, which is one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Name of the tool: 1 to 64 of `a-z A-Z 0-9 _ - .`, unique in its document.
    pub tool: Arc<str>,
    /// The `operationId`, where the document has one.
    pub id: Option<Arc<str>>,
    /// The HTTP method.
    pub method: Method,
    /// The path template below the server's URL, in parts. The first part begins with `/`.
    pub path: Box<[PathPart]>,
    /// Parameters outside the body, in the order of the document.
    pub parameters: Box<[Parameter]>,
    /// The request body; none where the operation takes none.
    pub body: Option<Body>,
    /// Successful responses: of status codes 2xx, `2XX` and `default`.
    pub responses: Box<[Success]>,
    /// Place of the value of an answer in `structuredContent`, for which the tool's output schema was written.
    pub shape: ResponseShape,
    /// Alternative requirements; one of them is enough. Empty: the operation needs no credentials. An empty alternative says that
    /// credentials are optional.
    pub security: Arc<[Box<[Requirement]>]>,
    /// The servers of the operation, the first of which is the default. Empty: `/` relative to the document.
    pub servers: Arc<[Server]>,
    /// The servers are those of the operation or its path, and not of the whole document.
    pub own_servers: bool,
    /// Successful responses have the header `Link`, by the document.
    pub links: bool,
    /// The operation may be sent again after a failure: by its method (RFC 9110 §9.2.2), or by a hint of the document.
    pub idempotent: bool,
}

impl Operation {
    /// The path template as the document has it: `/users/{id}`.
    pub fn path_template(&self) -> String {
        let part = |part: &PathPart| match part {
            PathPart::Literal(text) => text.to_string(),
            PathPart::Parameter(at) => format!("{{{}}}", self.parameters[*at].name),
        };
        self.path.iter().map(part).collect()
    }
}

/// A part of a path template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    /// Text that is sent as it is, apart from characters that no path may have.
    Literal(Box<str>),
    /// Place of a parameter in [`Operation::parameters`], whose location is [`Location::Path`].
    Parameter(usize),
}

/// A parameter outside the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the argument in the tool's input.
    pub argument: Arc<str>,
    /// Name in the request.
    pub name: Arc<str>,
    /// Place in the request.
    pub location: Location,
    /// Spelling of arrays and objects. Meaningless with `content`.
    pub style: Style,
    /// Each item or property is written by itself.
    pub explode: bool,
    /// Reserved characters (RFC 3986 §2.2) are sent as they are.
    pub allow_reserved: bool,
    /// The request needs it.
    pub required: bool,
    /// Media type of a parameter with `content`, whose value is written in that type.
    pub content: Option<Arc<str>>,
    /// Number that stands for the first page or item, where the document shows one: the default, or the least value if it is 0 or 1.
    pub first: Option<u64>,
    /// Names of the members of an object whose members are fields of their own.
    pub members: Box<[Arc<str>]>,
}

/// Place of a parameter in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Location {
    /// In the path.
    Path,
    /// A field of the query.
    Query,
    /// The whole query (OpenAPI 3.2); it has `content`.
    QueryString,
    /// A header.
    Header,
    /// A field of the header `Cookie`.
    Cookie,
}

/// Spelling of a value that has parts (OpenAPI 3.2, style values).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `a,b`. The default of paths and headers.
    Simple,
    /// `.a.b`, in paths.
    Label,
    /// `;name=a;name=b`, in paths.
    Matrix,
    /// `name=a&name=b`, or `name=a,b`. The default of queries, cookies and forms.
    Form,
    /// `name=a%20b`.
    SpaceDelimited,
    /// `name=a|b`.
    PipeDelimited,
    /// `name=a%09b`: `collectionFormat: tsv` of Swagger 2.0.
    TabDelimited,
    /// `name[key]=a`.
    DeepObject,
    /// `name=a; name=b` without escapes, in cookies (OpenAPI 3.2).
    Cookie,
}

/// A request body in one media type, chosen from those of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The media type, sent as `Content-Type`. A multipart type gets its boundary at the call. For a range such as `image/*`, which no
    /// request can name, `application/octet-stream`.
    pub media_type: Arc<str>,
    /// Kind of the media type.
    pub kind: BodyKind,
    /// Arguments that make up the body.
    pub arguments: BodyArguments,
    /// The request needs a body. Without it, a call that has none of the arguments sends none.
    pub required: bool,
}

/// Kinds of media types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyKind {
    /// `application/json` and `+json`.
    Json,
    /// A sequence of JSON values, a line for each: `application/x-ndjson`, `application/jsonl`.
    JsonLines,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data` and other `multipart` types.
    Multipart,
    /// Other text: the argument is a string.
    Text,
    /// Bytes: the argument is a string in base64, or a `data:` or resource URI.
    Binary,
}

/// Arguments that make up a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyArguments {
    /// One argument is the whole body.
    Whole(Arc<str>),
    /// The body is an object whose fields are arguments beside the parameters.
    Fields {
        /// Fields with a name, in the order of the document.
        fields: Box<[BodyField]>,
        /// Arguments that are neither a parameter nor a field belong to the body, too, under their own names.
        open: bool,
    },
}

/// A field of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyField {
    /// Name of the argument in the tool's input.
    pub argument: Arc<str>,
    /// Name in the body.
    pub name: Arc<str>,
    /// Encoding in forms; meaningless in JSON.
    pub encoding: FieldEncoding,
}

/// Encoding of a field of a form or a multipart body (OpenAPI 3.2, Encoding Object), with the defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldEncoding {
    /// `Content-Type` of the part in a multipart body; in a form, values are written in this type where `style` is none.
    /// Several types, as in `image/png, image/jpeg`, are all allowed. None: text for simple values, JSON for others.
    pub content_type: Option<Arc<str>>,
    /// Spelling as of a query parameter. Always there in a form, unless the document names a content type; in a multipart body where the
    /// document asks for it.
    pub style: Option<Style>,
    /// Each item or property is written by itself. In a multipart body, an array is one part for each item in any case.
    pub explode: bool,
    /// Reserved characters are sent as they are.
    pub allow_reserved: bool,
    /// The value, or each of its items, is a file: bytes in base64, or a `data:` or resource URI.
    pub file: bool,
    /// Names of the members of an object whose members are fields of their own.
    pub members: Box<[Arc<str>]>,
}

/// A successful response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Success {
    /// Its status codes.
    pub status: StatusCodes,
    /// Media types that the server may choose from. Empty: no content.
    pub media: Box<[Media]>,
}

/// Status codes of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusCodes {
    /// One.
    One(u16),
    /// All 2xx: `2XX`.
    Range,
    /// All that have no response of their own: `default`.
    Default,
}

/// A media type of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// The type or a range, as the document has it.
    pub media_type: Arc<str>,
    /// The content is a sequence of items (`itemSchema` of OpenAPI 3.2, or a type for sequences such as `text/event-stream`).
    pub stream: bool,
}

/// Place of the value of an answer in `structuredContent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseShape {
    /// The output schema is that of an object, which is `structuredContent` itself.
    Object,
    /// The output schema has `result`, whose value is the answer: `{"result": …}`.
    Wrapped,
    /// There is no output schema: an object stands for itself, and other JSON is wrapped as `{"result": …}`.
    Unknown,
}

/// A security scheme that a request has to satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Name of the scheme among those of the document. It may be missing there.
    pub scheme: Arc<str>,
    /// Scopes or roles.
    pub scopes: Box<[Arc<str>]>,
}

/// A security scheme of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecurityScheme {
    /// A key in a header, the query or a cookie.
    ApiKey {
        /// Its name there.
        name: Arc<str>,
        /// Its place.
        location: ApiKeyLocation,
    },
    /// `Authorization: Basic …`.
    Basic,
    /// `Authorization: Bearer …`.
    Bearer,
    /// `Authorization` with another scheme (RFC 9110 §16.4.1), such as `digest`.
    Http(Arc<str>),
    /// OAuth 2.0.
    Oauth2 {
        /// Flows of the document.
        flows: Arc<[Oauth2Flow]>,
        /// Metadata of the authorization server (RFC 8414; OpenAPI 3.2).
        metadata_url: Option<Arc<str>>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// The discovery document.
        url: Arc<str>,
    },
    /// A client certificate.
    MutualTls,
    /// A type that this crate does not know.
    Unknown(Arc<str>),
}

/// Place of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKeyLocation {
    /// A header.
    Header,
    /// A field of the query.
    Query,
    /// A field of the header `Cookie`.
    Cookie,
}

/// A flow of OAuth 2.0. URLs may be relative to the server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oauth2Flow {
    /// Kind of the flow.
    pub kind: Oauth2FlowKind,
    /// The authorization endpoint.
    pub authorization_url: Option<Arc<str>>,
    /// The token endpoint.
    pub token_url: Option<Arc<str>>,
    /// The endpoint for refresh tokens, where it is another one.
    pub refresh_url: Option<Arc<str>>,
    /// Scopes of the document.
    pub scopes: Box<[Arc<str>]>,
}

/// Kinds of flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oauth2FlowKind {
    /// The user consents in a browser.
    AuthorizationCode,
    /// The client acts for itself.
    ClientCredentials,
    /// The client has the user's password.
    Password,
    /// The token comes in a URL.
    Implicit,
    /// The user consents on another device (OpenAPI 3.2).
    Device,
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its URL with variables in braces: `https://{region}.example.com/v2`. It may be relative to the document's own URL.
    pub url: Box<str>,
    /// Its variables.
    pub variables: Box<[ServerVariable]>,
}

/// A variable in the URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVariable {
    /// Its name.
    pub name: Box<str>,
    /// Its default.
    pub default: Box<str>,
    /// Values that it may have. Empty: any.
    pub allowed: Box<[Box<str>]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_a_path_is_put_together_from_its_parts() {
        let parameter = |name: &str| Parameter {
            argument: name.into(),
            name: name.into(),
            location: Location::Path,
            style: Style::Simple,
            explode: false,
            allow_reserved: false,
            required: true,
            content: None,
            first: None,
            members: Box::default(),
        };
        let operation = Operation {
            tool: "get".into(),
            id: None,
            method: Method::GET,
            path: [
                PathPart::Literal("/repos/".into()),
                PathPart::Parameter(1),
                PathPart::Literal("/".into()),
                PathPart::Parameter(0),
            ]
            .into(),
            parameters: [parameter("name"), parameter("owner")].into(),
            body: None,
            responses: Box::default(),
            shape: ResponseShape::Unknown,
            security: Arc::default(),
            servers: Arc::default(),
            own_servers: false,
            links: false,
            idempotent: true,
        };
        assert_eq!(operation.path_template(), "/repos/{owner}/{name}");
    }
}
