//! The issuer of tokens, and the tokens of users.

use std::path::Path;

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
    token::{Auth, TokenFactory, TokenFactoryOptions, TokenOptions},
};

/// The caller of a client.
#[derive(Debug, Clone, Default)]
pub(in crate::suite) struct Caller {
    /// The bearer token.
    pub(in crate::suite) token: Option<String>,
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
        let with_token = |token| Ok(Caller { token: Some(token), is_anonymous: false });
        let described = match user {
            None => return Ok(Caller::default()),
            Some(User::Token(one)) => return with_token(variables.text(&one.token)?),
            Some(User::Described(user)) => user,
            Some(User::Named(name)) => {
                let name = variables.text(name)?;
                let users = &self.auth.users;
                let user = match (name.as_str(), suite.file.users.get(&name)) {
                    ("anonymous", _) => return Ok(Caller { token: None, is_anonymous: true }),
                    (_, Some(user)) => return with_token(self.signed(user, variables)?),
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
        with_token(self.signed(described, variables)?)
    }

    fn signed(&self, user: &UserSection, variables: &Variables) -> Result<String, String> {
        let mut options = TokenOptions::new(variables.text(&user.sub)?).scopes(&user.scopes);
        options.email.clone_from(&user.email);
        options.name.clone_from(&user.name);
        options.expires_in = user.expires_in;
        for (name, value) in &user.claims {
            options = options.claim(name, variables.fill(value)?);
        }
        Ok(match (user.expired, user.invalid_signature) {
            (true, _) => self.auth.create_expired_token(&options),
            (_, true) => self.auth.create_invalid_token(&options),
            (false, false) => self.auth.create_token(&options),
        })
    }
}
