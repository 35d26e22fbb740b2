//! HTTP APIs with an OpenAPI document, as apps of the gateway: each operation is a tool.
//!
//! The document side reads any version of OpenAPI into [`Operation`]s and the tools of a catalog. The call side sends
//! a request for an operation and turns the response into the result of a tool. They share the model in `operation`, and nothing else.

#![forbid(unsafe_code)]

mod app;
mod call;
mod certificate;
mod config;
mod document;
mod endpoints;
mod listed;
mod loading;
mod operation;
mod sign_in;

pub use app::OpenapiApp;
pub use call::{Called, HttpApi, OperationCall, Reporter, Surroundings};
pub use config::{
    ApiAuth, ApiKeyPlace, ClientCredentials, Credential, DocumentPlace, HealthCheck, OpenapiConfig,
    UserAuthorization,
};
pub use document::{Document, DocumentError, DocumentOptions, Finding, Selector, read};
pub use loading::{DocumentReport, check};
pub use operation::{
    ApiKeyLocation, Body, BodyArguments, BodyField, BodyKind, FieldEncoding, Location, Media, Oauth2Flow,
    Oauth2FlowKind, Operation, Parameter, PathPart, Requirement, ResponseShape, SecurityScheme, Server,
    ServerVariable, StatusCodes, Style, Success,
};
pub use sign_in::{ApiSignIn, ApiUser, SignInServer, UserSignIn};
