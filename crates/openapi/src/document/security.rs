//! Security schemes, and what of them an operation requires.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use super::{
    context::{Context, Version},
    sources::{ByNode, Node, clipped},
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
    // Several names may refer to one scheme.
    let mut known: ByNode<Option<SecurityScheme>> = ByNode::default();
    all.filter_map(|(name, given)| {
        let node = context.resolved(given)?;
        let scheme = known.entry(node.identity()).or_insert_with(|| {
            let read = scheme(context, node);
            if read.is_none() {
                context.find(node, "the security scheme lacks a part that its type needs");
            }
            read
        });
        Some((context.own(given, name)?, scheme.clone()?))
    })
    .collect()
}

fn scheme<'d>(context: &Context<'d>, node: Node<'d>) -> Option<SecurityScheme> {
    let own = |key: &str| context.own(node, node.text(key)?);
    let scheme = match node.text("type")? {
        "basic" => SecurityScheme::Basic,
        "apiKey" => SecurityScheme::ApiKey {
            name: own("name")?,
            location: match node.text("in")? {
                "header" => ApiKeyLocation::Header,
                "query" => ApiKeyLocation::Query,
                "cookie" => ApiKeyLocation::Cookie,
                _ => return None,
            },
        },
        "http" => match own("scheme")?.to_ascii_lowercase().as_str() {
            "basic" => SecurityScheme::Basic,
            "bearer" => SecurityScheme::Bearer,
            other => SecurityScheme::Http(other.into()),
        },
        "oauth2" => SecurityScheme::Oauth2 {
            flows: match context.version {
                Version::Swagger => [flow(context, node, swagger_flow(node.text("flow")?)?)].into(),
                Version::V30 | Version::V31 => flows(context, node.get("flows")?),
            },
            metadata_url: own("oauth2MetadataUrl"),
        },
        "openIdConnect" => SecurityScheme::OpenIdConnect { url: own("openIdConnectUrl")? },
        "mutualTLS" => SecurityScheme::MutualTls,
        other => {
            context.find(node, format!("the type `{}` of a security scheme is not known", clipped(other)));
            SecurityScheme::Unknown(clipped(other).into())
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

fn flows<'d>(context: &Context<'d>, flows: Node<'d>) -> Arc<[Oauth2Flow]> {
    let kind = |name: &str| match name {
        "authorizationCode" => Some(Oauth2FlowKind::AuthorizationCode),
        "clientCredentials" => Some(Oauth2FlowKind::ClientCredentials),
        "password" => Some(Oauth2FlowKind::Password),
        "implicit" => Some(Oauth2FlowKind::Implicit),
        "deviceAuthorization" => Some(Oauth2FlowKind::Device),
        _ => None,
    };
    flows.members().filter_map(|(name, node)| Some(flow(context, node, kind(name)?))).collect()
}

fn flow<'d>(context: &Context<'d>, node: Node<'d>, kind: Oauth2FlowKind) -> Oauth2Flow {
    let url = |key: &str| context.own(node, node.text(key)?);
    let scopes = node.get("scopes").into_iter().flat_map(Node::members).take(MOST);
    Oauth2Flow {
        kind,
        authorization_url: match kind {
            Oauth2FlowKind::Device => url("deviceAuthorizationUrl"),
            _ => url("authorizationUrl"),
        },
        token_url: url("tokenUrl"),
        refresh_url: url("refreshUrl"),
        scopes: scopes.filter_map(|(scope, _)| context.own(node, scope)).collect(),
    }
}

/// Parameters that carry the key of a scheme, by its name: places and names, those of headers in lower case.
pub(super) type Keys = HashMap<Arc<str>, (Location, Arc<str>)>;

/// The parameters of all schemes that are API keys.
pub(super) fn keys(schemes: &Schemes) -> Keys {
    let key = |(scheme, of): (&Arc<str>, &SecurityScheme)| {
        let SecurityScheme::ApiKey { name, location } = of else { return None };
        let key = match location {
            ApiKeyLocation::Header => (Location::Header, name.to_ascii_lowercase().into()),
            ApiKeyLocation::Query => (Location::Query, Arc::clone(name)),
            ApiKeyLocation::Cookie => (Location::Cookie, Arc::clone(name)),
        };
        Some((Arc::clone(scheme), key))
    };
    schemes.iter().filter_map(key).collect()
}

/// Requirements of an operation.
#[derive(Clone, Default)]
pub(super) struct Secured {
    pub(super) security: Security,
    /// Parameters of a request that carry credentials, which the gateway adds: places and names, those of headers in lower case.
    pub(super) keys: Rc<HashSet<(Location, Arc<str>)>>,
}

impl Secured {
    /// Reads the `security` of a document or an operation. An operation's empty list lifts that of the document.
    pub(super) fn read<'d>(context: &Context<'d>, given: Node<'d>, schemes: &Schemes, keys: &Keys) -> Self {
        let requirement = |(name, scopes): (&'d str, Node<'d>)| {
            let known = schemes.get_key_value(name).map(|(name, _)| Arc::clone(name));
            if known.is_none() {
                context.find(given, format!("there is no security scheme `{}`", clipped(name)));
            }
            let scopes = scopes.items().take(MOST).filter_map(|scope| scope.value.as_str());
            Requirement {
                // One that nobody has, of a name that is too long, cannot be satisfied either.
                scheme: known.or_else(|| context.own(given, name)).unwrap_or_else(|| clipped(name).into()),
                scopes: scopes.filter_map(|scope| context.own(given, scope)).collect(),
            }
        };
        let alternatives = given.items().take(MOST_REQUIREMENTS);
        let security: Security = alternatives
            .map(|alternative| alternative.members().take(MOST_REQUIREMENTS).map(requirement).collect())
            .collect();
        let used = security.iter().flatten().filter_map(|requirement| keys.get(&requirement.scheme));
        let keys = used.inspect(|(_, name)| context.spend(name.len())).cloned().collect();
        Self { security, keys: Rc::new(keys) }
    }
}
