//! Security schemes, and what of them an operation requires.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use super::{
    context::{Context, Version},
    sources::{Node, clipped},
};
use crate::{ApiKeyLocation, Location, Oauth2Flow, Oauth2FlowKind, Requirement, SecurityScheme};

/// Most schemes and scopes that are read.
const MOST: usize = 1_000;
/// Most alternatives, and most requirements of one.
const MOST_REQUIREMENTS: usize = 50;

/// Schemes by name.
pub(super) type Schemes = BTreeMap<Arc<str>, SecurityScheme>;

/// Alternatives of which one is enough.
pub(super) type Security = Arc<[Box<[Requirement]>]>;

/// The schemes of a document.
pub(super) fn schemes<'d>(context: &Context<'d>, root: Node<'d>) -> Schemes {
    let all = match context.version {
        Version::Swagger => root.get("securityDefinitions"),
        Version::V30 | Version::V31 => root.get("components").and_then(|parts| parts.get("securitySchemes")),
    };
    let all = all.into_iter().flat_map(Node::members).take(MOST);
    all.filter_map(|(name, given)| {
        let node = context.resolved(given)?;
        let scheme = scheme(context, node).or_else(|| {
            context.find(node, "the security scheme lacks a part that its type needs");
            None
        })?;
        Some((name.into(), scheme))
    })
    .collect()
}

fn scheme(context: &Context<'_>, node: Node<'_>) -> Option<SecurityScheme> {
    let scheme = match node.text("type")? {
        "basic" => SecurityScheme::Basic,
        "apiKey" => SecurityScheme::ApiKey {
            name: node.text("name")?.into(),
            location: match node.text("in")? {
                "header" => ApiKeyLocation::Header,
                "query" => ApiKeyLocation::Query,
                "cookie" => ApiKeyLocation::Cookie,
                _ => return None,
            },
        },
        "http" => match node.text("scheme")?.to_ascii_lowercase().as_str() {
            "basic" => SecurityScheme::Basic,
            "bearer" => SecurityScheme::Bearer,
            other => SecurityScheme::Http(other.into()),
        },
        "oauth2" => SecurityScheme::Oauth2 {
            flows: match context.version {
                Version::Swagger => [flow(node, swagger_flow(node.text("flow")?)?)].into(),
                Version::V30 | Version::V31 => flows(node.get("flows")?),
            },
            metadata_url: node.text("oauth2MetadataUrl").map(Into::into),
        },
        "openIdConnect" => SecurityScheme::OpenIdConnect { url: node.text("openIdConnectUrl")?.into() },
        "mutualTLS" => SecurityScheme::MutualTls,
        other => {
            context.find(node, format!("the type `{}` of a security scheme is not known", clipped(other)));
            SecurityScheme::Unknown(other.into())
        }
    };
    Some(scheme)
}

fn swagger_flow(name: &str) -> Option<Oauth2FlowKind> {
    match name {
        "implicit" => Some(Oauth2FlowKind::Implicit),
        "password" => Some(Oauth2FlowKind::Password),
        "application" => Some(Oauth2FlowKind::ClientCredentials),
        "accessCode" => Some(Oauth2FlowKind::AuthorizationCode),
        _ => None,
    }
}

fn flows(flows: Node<'_>) -> Box<[Oauth2Flow]> {
    let kind = |name: &str| match name {
        "authorizationCode" => Some(Oauth2FlowKind::AuthorizationCode),
        "clientCredentials" => Some(Oauth2FlowKind::ClientCredentials),
        "password" => Some(Oauth2FlowKind::Password),
        "implicit" => Some(Oauth2FlowKind::Implicit),
        "deviceAuthorization" => Some(Oauth2FlowKind::Device),
        _ => None,
    };
    flows.members().filter_map(|(name, node)| Some(flow(node, kind(name)?))).collect()
}

fn flow(node: Node<'_>, kind: Oauth2FlowKind) -> Oauth2Flow {
    let url = |key: &str| node.text(key).map(Into::into);
    let scopes = node.get("scopes").into_iter().flat_map(Node::members).take(MOST);
    Oauth2Flow {
        kind,
        authorization_url: match kind {
            Oauth2FlowKind::Device => url("deviceAuthorizationUrl"),
            _ => url("authorizationUrl"),
        },
        token_url: url("tokenUrl"),
        refresh_url: url("refreshUrl"),
        scopes: scopes.map(|(scope, _)| scope.into()).collect(),
    }
}

/// The `security` of a document or an operation; none if it has none. An operation's empty list lifts that of the document.
pub(super) fn requirements(context: &Context<'_>, node: Node<'_>, schemes: &Schemes) -> Option<Security> {
    let given = node.get("security")?;
    let requirement = |(name, scopes): (&str, Node<'_>)| {
        let known = schemes.get_key_value(name).map(|(name, _)| Arc::clone(name));
        if known.is_none() {
            context.find(given, format!("there is no security scheme `{}`", clipped(name)));
        }
        let scopes = scopes.items().take(MOST).filter_map(|scope| scope.value.as_str());
        Requirement { scheme: known.unwrap_or_else(|| name.into()), scopes: scopes.map(Into::into).collect() }
    };
    let alternatives = given.items().take(MOST_REQUIREMENTS);
    Some(
        alternatives
            .map(|alternative| alternative.members().take(MOST_REQUIREMENTS).map(requirement).collect())
            .collect(),
    )
}

/// Parameters of a request that carry credentials of `security`, which the gateway adds: places and names, those of headers in lower case.
pub(super) fn keys(security: &Security, schemes: &Schemes) -> HashSet<(Location, String)> {
    let key = |requirement: &Requirement| match schemes.get(&requirement.scheme) {
        Some(SecurityScheme::ApiKey { name, location }) => Some(match location {
            ApiKeyLocation::Header => (Location::Header, name.to_ascii_lowercase()),
            ApiKeyLocation::Query => (Location::Query, name.to_string()),
            ApiKeyLocation::Cookie => (Location::Cookie, name.to_string()),
        }),
        _ => None,
    };
    security.iter().flatten().filter_map(key).collect()
}
