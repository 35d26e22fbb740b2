//! Sign-in of users at the authorization server of an API, as the document and the configuration describe it.
//!
//! Asking users, and keeping and refreshing their tokens, is left to the implementation of [`UserSignIn`].

use std::{collections::BTreeSet, sync::Arc};

use gatewright_core::{InvalidField, Principal, Secret, UserCredentials};
use url::Url;

use crate::{
    Oauth2Flow, Oauth2FlowKind, SecurityScheme,
    call::Schemes,
    config::{ApiAuth, Credential, OpenapiConfig, UserAuthorization},
    endpoints,
};

const WELL_KNOWN: &str = "/.well-known/";

/// The authorization server of an API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInServer {
    /// One whose metadata has its endpoints (RFC 8414, or OpenID Connect Discovery).
    Issuer(String),
    /// One with these endpoints.
    Endpoints {
        /// The authorization endpoint.
        authorization: String,
        /// The token endpoint.
        token: String,
        /// The endpoint for refresh tokens, where it is another one.
        refresh: Option<String>,
    },
}

/// Parameters of the sign-in of users at an API.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiSignIn {
    /// Origins of the API, to which tokens are sent.
    pub resource: String,
    /// The authorization server.
    pub server: SignInServer,
    /// Name that the authorization server gives itself in its answers (RFC 9207).
    pub issuer: Option<String>,
    /// The gateway's client identifier there. None: the gateway has to register itself.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<Secret>,
    /// Identifier and secret go into the body.
    pub secret_in_body: bool,
    /// Scopes to ask for in any case.
    pub scopes: Vec<String>,
    /// Further parameters of the authorization request.
    pub parameters: Vec<(String, String)>,
    /// Allows private and loopback addresses, and plain HTTP there.
    pub allow_private: bool,
}

/// Signs users in at APIs, and keeps their tokens.
pub trait UserSignIn: UserCredentials {
    /// Adds the app called `app`, or replaces its settings.
    ///
    /// # Errors
    /// No client for outgoing requests can be made.
    fn serve(&self, app: &str, sign_in: ApiSignIn) -> Result<(), String>;
}

/// The user for whom an API is called.
#[derive(Clone)]
pub struct ApiUser {
    /// Id of the app.
    pub app: Arc<str>,
    /// The user.
    pub principal: Arc<Principal>,
    /// Keeps the tokens of users.
    pub credentials: Arc<dyn UserSignIn>,
}

impl std::fmt::Debug for ApiUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiUser").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// The sign-in that `auth` of the configuration asks for; none if no credential is `oauth`. URLs of the document are relative to `server`.
///
/// # Errors
/// Neither the document nor the configuration names the authorization server, or that of the document may not be used.
pub(crate) fn of_document(
    config: &OpenapiConfig,
    schemes: &Schemes,
    server: Option<&Url>,
    origins: &BTreeSet<String>,
) -> Result<Option<ApiSignIn>, InvalidField> {
    let credentials = config.auth.iter().flat_map(ApiAuth::all);
    let user = credentials.into_iter().find_map(|(scheme, credential)| match credential {
        Credential::Oauth(user) => Some((scheme, user)),
        _ => None,
    });
    let Some((scheme, user)) = user else { return Ok(None) };
    let base = config.base()?;
    let place = scheme.map(|scheme| format!("auth.{scheme}")).unwrap_or_else(|| "auth".to_owned());
    let described = |scheme| described(user, scheme, server, base.as_ref()).transpose();
    let found = match named(user) {
        Some(found) => Some(found),
        None => match scheme {
            Some(scheme) => schemes.get(scheme).and_then(described),
            None => schemes.values().find_map(described),
        }
        .transpose()
        .map_err(|problem| InvalidField::new(place.clone(), problem))?,
    };
    let Some(found) = found else {
        let problem = "the document describes no sign-in of users (an authorization code flow or OpenID Connect); set `authorizationUrl` \
                       and `tokenUrl`, or `issuer`";
        return Err(InvalidField::new(place, problem));
    };
    Ok(Some(ApiSignIn {
        resource: origins.iter().cloned().collect::<Vec<_>>().join(" "),
        server: found,
        issuer: user.issuer.clone(),
        client_id: user.client_id.clone(),
        client_secret: user.client_secret.clone(),
        secret_in_body: user.in_body,
        scopes: user.scopes.clone(),
        parameters: user.parameters.clone().into_iter().collect(),
        allow_private: config.allow_private,
    }))
}

/// The server that the configuration names.
fn named(user: &UserAuthorization) -> Option<SignInServer> {
    match (&user.authorization_url, &user.token_url, &user.issuer) {
        (Some(authorization), Some(token), _) => Some(SignInServer::Endpoints {
            authorization: authorization.clone(),
            token: token.clone(),
            refresh: None,
        }),
        (None, None, Some(issuer)) => Some(SignInServer::Issuer(issuer.clone())),
        _ => None,
    }
}

/// The server that a security scheme describes. One URL of the configuration replaces that of the document.
///
/// # Errors
/// It may not be used.
fn described(
    user: &UserAuthorization,
    scheme: &SecurityScheme,
    server: Option<&Url>,
    base: Option<&Url>,
) -> Result<Option<SignInServer>, String> {
    let whole = |url: &str, field: &str| endpoints::of_document(url, field, server, base).map(String::from);
    let issuer_of = |metadata: &str| {
        let metadata = whole(metadata, "issuer")?;
        let issuer = metadata.split_once(WELL_KNOWN).map(|(issuer, _)| issuer.to_owned());
        Ok(issuer.map(SignInServer::Issuer))
    };
    match scheme {
        SecurityScheme::Oauth2 { flows, metadata_url } => {
            let is_of_code = |flow: &&Oauth2Flow| flow.kind == Oauth2FlowKind::AuthorizationCode;
            let Some(flow) = flows.iter().find(is_of_code) else {
                return metadata_url.as_deref().map_or(Ok(None), issuer_of);
            };
            // Where the gateway registers itself, the metadata says how.
            if let (None, Some(metadata)) = (&user.client_id, metadata_url.as_deref())
                && let Ok(Some(server)) = issuer_of(metadata)
            {
                return Ok(Some(server));
            }
            let url = |own: &Option<String>, of_document: &Option<Arc<str>>, field| match own {
                Some(own) => Ok(Some(own.clone())),
                None => of_document.as_deref().map(|url| whole(url, field)).transpose(),
            };
            let authorization = url(&user.authorization_url, &flow.authorization_url, "authorizationUrl")?;
            let token = url(&user.token_url, &flow.token_url, "tokenUrl")?;
            // With a token endpoint of the operator, the document names no other place for tokens.
            let refresh = flow.refresh_url.as_deref().filter(|_| user.token_url.is_none());
            let refresh = refresh.map(|url| whole(url, "tokenUrl")).transpose()?;
            Ok(authorization.zip(token).map(|(authorization, token)| SignInServer::Endpoints {
                authorization,
                token,
                refresh,
            }))
        }
        SecurityScheme::OpenIdConnect { url } => issuer_of(url),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn found(auth: Value, scheme: Option<SecurityScheme>) -> Result<SignInServer, String> {
        found_with(None, auth, scheme)
    }

    fn found_with(
        base: Option<&str>,
        auth: Value,
        scheme: Option<SecurityScheme>,
    ) -> Result<SignInServer, String> {
        let mut config = OpenapiConfig::new("a.yaml");
        config.base_url = base.map(Into::into);
        config.auth = Some(serde_json::from_value(auth).unwrap());
        let schemes = scheme.into_iter().map(|scheme| ("Login".into(), scheme)).collect();
        let server = Url::parse("https://api.example/v1/").unwrap();
        let origins = BTreeSet::from(["https://api.example".to_owned()]);
        match of_document(&config, &schemes, Some(&server), &origins) {
            Ok(found) => Ok(found.unwrap().server),
            Err(problem) => Err(problem.to_string()),
        }
    }

    fn flow(kind: Oauth2FlowKind) -> SecurityScheme {
        let flow = Oauth2Flow {
            kind,
            authorization_url: Some("https://login.example/authorize".into()),
            token_url: Some("/token".into()),
            refresh_url: Some("/refresh".into()),
            scopes: Box::default(),
        };
        SecurityScheme::Oauth2 { flows: [flow].into(), metadata_url: None }
    }

    #[test]
    fn the_authorization_server_is_that_of_the_configuration_or_the_document() {
        let endpoints = |authorization: &str, token: &str, refresh: Option<&str>| {
            Ok(SignInServer::Endpoints {
                authorization: authorization.into(),
                token: token.into(),
                refresh: refresh.map(Into::into),
            })
        };
        let own = json!({"type": "oauth", "clientId": "me"});
        let code = || Some(flow(Oauth2FlowKind::AuthorizationCode));
        let (login, token) = ("https://login.example/authorize", "https://api.example/token");
        assert_eq!(found(own.clone(), code()), endpoints(login, token, Some("https://api.example/refresh")));
        assert!(found(json!({"Login": own}), code()).is_ok());
        let replaced = json!({"type": "oauth", "clientId": "me", "tokenUrl": "https://mine.example/t"});
        assert_eq!(found(replaced, code()), endpoints(login, "https://mine.example/t", None));
        let both = json!({"type": "oauth", "clientId": "me", "tokenUrl": "https://m.example/t", "authorizationUrl": "https://m.example/a"});
        assert_eq!(found(both, None), endpoints("https://m.example/a", "https://m.example/t", None));
        let issuer = json!({"type": "oauth", "clientId": "me", "issuer": "https://idp.example/t1"});
        assert_eq!(found(issuer, None), Ok(SignInServer::Issuer("https://idp.example/t1".into())));
        let url = "https://idp.example/t2/.well-known/openid-configuration".into();
        assert_eq!(
            found(own.clone(), Some(SecurityScheme::OpenIdConnect { url })),
            Ok(SignInServer::Issuer("https://idp.example/t2".into()))
        );
        for scheme in [Some(flow(Oauth2FlowKind::Implicit)), Some(SecurityScheme::Bearer), None] {
            assert!(found(own.clone(), scheme).unwrap_err().contains("`authorizationUrl`"));
        }
        assert!(found(json!({"Other": own}), code()).is_err());
        let metadata = "https://idp.example/.well-known/oauth-authorization-server";
        let SecurityScheme::Oauth2 { flows, .. } = flow(Oauth2FlowKind::AuthorizationCode) else { panic!() };
        let with_metadata = SecurityScheme::Oauth2 { flows, metadata_url: Some(metadata.into()) };
        assert!(matches!(found(own, Some(with_metadata.clone())), Ok(SignInServer::Endpoints { .. })));
        assert_eq!(
            found(json!({"type": "oauth"}), Some(with_metadata)),
            Ok(SignInServer::Issuer("https://idp.example".into())),
            "its metadata says how to register"
        );
    }

    #[test]
    fn with_a_base_url_users_sign_in_at_its_origin_or_where_the_configuration_says() {
        let own = json!({"type": "oauth", "clientId": "me"});
        let code = || Some(flow(Oauth2FlowKind::AuthorizationCode));
        let metadata = || {
            let url = "https://idp.example/.well-known/openid-configuration".into();
            Some(SecurityScheme::OpenIdConnect { url })
        };
        let problem = found_with(Some("https://api.example/v2"), own.clone(), code()).unwrap_err();
        assert!(
            problem.contains("`authorizationUrl`") && problem.contains("https://login.example"),
            "{problem}"
        );
        let problem = found_with(Some("https://api.example/v2"), own.clone(), metadata()).unwrap_err();
        assert!(problem.contains("`issuer`"), "{problem}");
        let replaced =
            json!({"type": "oauth", "clientId": "me", "authorizationUrl": "https://login.example/a"});
        assert!(found_with(Some("https://api.example/v2"), replaced, code()).is_ok());
        assert!(found_with(Some("https://idp.example/"), own, metadata()).is_ok());
    }
}
