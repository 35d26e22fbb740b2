//! The issuer of tokens, and the tokens of users.

use std::path::Path;

use serde_json::{Map, Value};

use super::Environment;
use crate::{
    mock_oauth::{MockOAuthServer, MockOAuthServerOptions},
    suite::{
        check::USERS,
        environment::server::resolve_path,
        file::Suite,
        format::{AuthSection, IssuerSection, User, UserSection},
        variables::Variables,
    },
    token::{Auth, Defect, TokenFactory, TokenFactoryOptions, TokenOptions},
};

/// The caller of a client.
#[derive(Debug, Clone, Default)]
pub(in crate::suite) struct Caller {
    /// The bearer token.
    pub(in crate::suite) token: Option<String>,
    /// Headers of every HTTP request, besides those of the suite's server.
    pub(in crate::suite) headers: Vec<(String, String)>,
    /// True for `anonymous`, who sends no credential of any kind.
    pub(in crate::suite) is_anonymous: bool,
}

impl Environment {
    /// Starts the issuer of tokens, or knows the key of one that is already running.
    pub(super) async fn auth(
        section: &AuthSection,
        dir: Option<&Path>,
        variables: &Variables,
    ) -> Result<(Auth, Option<MockOAuthServer>), String> {
        let issuer = match section {
            AuthSection::Mock(false) => return Ok((Auth::default(), None)),
            AuthSection::Mock(true) => &IssuerSection::default(),
            AuthSection::Issuer(issuer) => issuer,
        };
        let mut options = TokenFactoryOptions::default();
        if let Some(audience) = &issuer.audience {
            options.audience = variables.text(audience)?;
        }
        if let Some(url) = &issuer.issuer {
            options.issuer = variables.text(url)?;
        }
        let mut factory = TokenFactory::new(options);
        if let Some(key) = &issuer.key {
            let path = resolve_path(dir, &variables.text(key)?);
            factory = factory.key_file(path).map_err(|error| error.to_string())?;
        }
        if issuer.issuer.is_some() {
            return Ok((Auth::new(factory), None));
        }
        let options = MockOAuthServerOptions { auto_approve: true, ..MockOAuthServerOptions::default() };
        let mut mock = MockOAuthServer::new(factory, options);
        for (endpoint, fault) in &issuer.faults {
            mock.inject_fault(endpoint.parse()?, variables.text(fault)?.parse()?, None);
        }
        mock.start().await.map_err(|error| format!("the mock OAuth server: {error}"))?;
        Ok((Auth::new(mock.get_token_factory()), Some(mock)))
    }

    /// The caller that a user is, with a new token.
    pub(in crate::suite) fn caller(
        &self,
        suite: &Suite,
        user: Option<&User>,
        variables: &Variables,
    ) -> Result<Caller, String> {
        let caller = self.find_caller(suite, user, variables)?;
        if let Some(token) = &caller.token {
            self.secrets.add_token(token);
        }
        Ok(caller)
    }

    fn find_caller(
        &self,
        suite: &Suite,
        user: Option<&User>,
        variables: &Variables,
    ) -> Result<Caller, String> {
        let with_token = |token| Ok(Caller { token: Some(token), ..Caller::default() });
        let described = match user {
            None => return Ok(Caller::default()),
            Some(User::Token(one)) => return with_token(variables.text(&one.token)?),
            Some(User::Described(user)) => user,
            Some(User::Named(name)) => {
                let name = variables.text(name)?;
                let users = &self.auth.users;
                let user = match (name.as_str(), suite.file.users.get(&name)) {
                    ("anonymous", _) => return Ok(Caller { is_anonymous: true, ..Caller::default() }),
                    (_, Some(user)) => return self.described(user, variables),
                    ("admin", None) => &users.admin,
                    ("user", None) => &users.user,
                    ("readOnly", None) => &users.read_only,
                    (name, None) => {
                        let known = USERS.into_iter().chain(suite.file.users.keys().map(String::as_str));
                        return Err(format!(
                            "`{name}`: {}",
                            gatewright_findings::unknown("user", name, known)
                        ));
                    }
                };
                return with_token(self.auth.create_token(user));
            }
        };
        self.described(described, variables)
    }

    fn described(&self, user: &UserSection, variables: &Variables) -> Result<Caller, String> {
        let headers = user.headers.iter().map(|(name, value)| Ok((name.clone(), variables.text(value)?)));
        Ok(Caller {
            token: user.sub.as_ref().map(|sub| signed(&self.auth, user, sub, variables)).transpose()?,
            headers: headers.collect::<Result<_, String>>()?,
            is_anonymous: false,
        })
    }

    /// The headers of every HTTP request of a caller: those of the suite's server, then its own, which replace others of the same name.
    pub(in crate::suite) fn headers(&self, caller: &Caller) -> Vec<(String, String)> {
        if caller.is_anonymous {
            return Vec::new();
        }
        let is_own = |name: &str| caller.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let shared = self.headers.iter().filter(|(name, _)| !is_own(name));
        shared.chain(&caller.headers).cloned().collect()
    }
}

/// A token of each user, by name: the values of `${tokens.NAME}`. Users whose texts have variables of a test are left out.
pub(super) fn tokens(auth: &Auth, suite: &Suite, variables: &Variables) -> Value {
    let users = &auth.users;
    let predefined = [("admin", &users.admin), ("user", &users.user), ("readOnly", &users.read_only)];
    let mut tokens: Map<String, Value> = predefined
        .into_iter()
        .map(|(name, user)| (name.to_owned(), auth.create_token(user).into()))
        .collect();
    for (name, user) in &suite.file.users {
        let Some(sub) = &user.sub else { continue };
        if let Ok(token) = signed(auth, user, sub, variables) {
            tokens.insert(name.clone(), token.into());
        }
    }
    tokens.into()
}

fn signed(auth: &Auth, user: &UserSection, sub: &str, variables: &Variables) -> Result<String, String> {
    let mut options = TokenOptions::new(variables.text(sub)?).scopes(&user.scopes);
    options.email.clone_from(&user.email);
    options.name.clone_from(&user.name);
    options.expires_in = user.expires_in;
    for (name, value) in &user.claims {
        options = options.claim(name, variables.fill(value)?);
    }
    let defect = user.broken.as_ref().map(|name| variables.text(name)?.parse::<Defect>()).transpose()?;
    Ok(match (defect, user.expired, user.invalid_signature) {
        (Some(defect), ..) => auth.factory().create_broken_token(&options, defect),
        (None, true, _) => auth.create_expired_token(&options),
        (None, _, true) => auth.create_invalid_token(&options),
        (None, false, false) => auth.create_token(&options),
    })
}
