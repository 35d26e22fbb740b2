//! Tokens of users: whose goes with a call, for which scopes, and when the user has to sign in.

use std::sync::{Arc, Mutex};

use gatewright_core::{AppFuture, Authorize, BearerToken, Principal, Scopes, UserCredentials};
use gatewright_openapi::{
    ApiSignIn, ApiUser, Called, HttpApi, Operation, OperationCall, Reporter, Requirement, SecurityScheme,
    Surroundings, UserSignIn,
};
use http::Method;
use serde_json::json;

use crate::mock::{Mock, auth, block, json_reply, operation, reply};

/// Keeps `(subject, scopes, token)`. A token that is refused is replaced by `again-{subject}`, once.
#[derive(Default)]
struct Kept {
    tokens: Mutex<Vec<(String, Vec<String>, String)>>,
    asked: Mutex<Vec<Vec<String>>>,
}

impl UserCredentials for Kept {
    fn bearer<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        scopes: &'a [String],
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        assert_eq!(app, "shop");
        self.asked.lock().unwrap().push(scopes.to_vec());
        let tokens = self.tokens.lock().unwrap();
        let found = tokens.iter().find(|(subject, ..)| **subject == *principal.subject);
        let found = found.filter(|(_, own, _)| scopes.iter().all(|scope| own.contains(scope)));
        let token = found.map(|(.., token)| BearerToken::new(token.as_str()));
        Box::pin(async move { Ok(token) })
    }

    fn authorize<'a>(
        &'a self,
        _: &'a str,
        _: &'a Principal,
        _: &'a [String],
    ) -> AppFuture<'a, Result<Authorize, String>> {
        Box::pin(async { Err("nobody is asked here".to_owned()) })
    }

    fn refused<'a>(
        &'a self,
        _: &'a str,
        principal: &'a Principal,
        token: &'a BearerToken,
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        let other = format!("again-{}", principal.subject);
        let other = (token.expose() != other).then(|| BearerToken::new(other));
        Box::pin(async move { Ok(other) })
    }
}

impl UserSignIn for Kept {
    fn serve(&self, _: &str, _: ApiSignIn) -> Result<(), String> {
        Ok(())
    }
}

/// An operation that requires these scopes of the scheme `login`.
fn needing(scopes: &[&str]) -> Operation {
    let scopes = scopes.iter().map(|scope| Arc::from(*scope)).collect();
    let requirement = Requirement { scheme: "login".into(), scopes };
    Operation { security: Arc::from([Box::from([requirement])]), ..operation(Method::GET, "/x") }
}

async fn called(api: &HttpApi, users: &Arc<Kept>, subject: Option<&str>, operation: &Operation) -> Called {
    let login = SecurityScheme::Oauth2 { flows: Arc::default(), metadata_url: None };
    let surroundings = Surroundings {
        schemes: [(Arc::from("login"), login)].into_iter().collect(),
        document: None,
        is_secured: true,
    };
    let user = subject.map(|subject| ApiUser {
        app: "shop".into(),
        principal: Arc::new(Principal {
            subject: subject.into(),
            client_id: None,
            scopes: Scopes::All,
            ..Principal::local()
        }),
        credentials: users.clone(),
    });
    let arguments = serde_json::Map::new();
    let call = OperationCall {
        operation,
        surroundings: &surroundings,
        arguments: &arguments,
        user,
        paginate: None,
        room: None,
        reporter: Reporter::Nobody,
        trail: None,
    };
    api.call(call).await
}

fn token(subject: &str, scopes: &[&str], token: &str) -> (String, Vec<String>, String) {
    (subject.to_owned(), scopes.iter().map(ToString::to_string).collect(), token.to_owned())
}

/// An API that answers with the token that it got, and refuses the token `old-token`.
async fn whoami() -> Mock {
    Mock::start(|request, _| match request.header("authorization") {
        Some("Bearer old-token") => reply(401, "text/plain", "old-token is old"),
        other => json_reply(200, &json!({"as": other})),
    })
    .await
}

fn seen(called: Called) -> serde_json::Value {
    match called {
        Called::Done(result) => result.structured_content.clone().unwrap_or_else(|| block(&result)),
        Called::SignIn(scopes) => json!({"sign in": scopes}),
    }
}

#[tokio::test]
async fn each_caller_is_seen_with_a_token_of_their_own_for_the_scopes_of_the_operation() {
    let (mock, users) = (whoami().await, Arc::new(Kept::default()));
    *users.tokens.lock().unwrap() =
        vec![token("ada", &["read", "write"], "of-ada"), token("bob", &["read"], "of-bob")];
    let api = mock.api(|own| own.auth = auth(json!({"type": "oauth", "clientId": "me"})));
    let (read, write) = (needing(&["read"]), needing(&["read", "write"]));
    let ask = async |subject, operation| seen(called(&api, &users, Some(subject), operation).await);
    assert_eq!(ask("ada", &write).await, json!({"as": "Bearer of-ada"}));
    assert_eq!(ask("bob", &read).await, json!({"as": "Bearer of-bob"}));
    assert_eq!(mock.requests().len(), 2);
    assert_eq!(ask("bob", &write).await, json!({"sign in": ["read", "write"]}));
    assert_eq!(ask("eve", &read).await, json!({"sign in": ["read"]}));
    assert_eq!(mock.requests().len(), 2, "nothing is sent without a token");
    assert_eq!(ask("eve", &operation(Method::GET, "/public")).await, json!({"as": null}));
    let nobody = seen(called(&api, &users, None, &read).await);
    assert_eq!(nobody["code"], "CREDENTIALS_MISSING");
}

#[tokio::test]
async fn scopes_of_the_configuration_replace_those_of_the_operation() {
    let (mock, users) = (whoami().await, Arc::new(Kept::default()));
    *users.tokens.lock().unwrap() = vec![token("ada", &[], "of-ada")];
    let own = json!({"login": {"type": "oauth", "clientId": "me", "scopes": ["everything"]}});
    let api = mock.api(|config| config.auth = auth(own));
    let called = seen(called(&api, &users, Some("ada"), &needing(&["read"])).await);
    assert_eq!(called, json!({"as": "Bearer of-ada"}));
    assert_eq!(*users.asked.lock().unwrap(), [Vec::<String>::new()]);
}

#[tokio::test]
async fn a_token_that_the_api_refuses_is_replaced_once_and_not_shown() {
    let users = Arc::new(Kept::default());
    *users.tokens.lock().unwrap() = vec![token("ada", &["read"], "old-token")];
    let mock = whoami().await;
    let config = json!({"type": "oauth", "clientId": "me"});
    let api = mock.api(|own| own.auth = auth(config.clone()));
    let ask = seen(called(&api, &users, Some("ada"), &needing(&["read"])).await);
    assert_eq!((ask, mock.requests().len()), (json!({"as": "Bearer again-ada"}), 2));
    // One that refuses everything, and repeats what it was sent.
    let mock = Mock::start(|request, _| {
        let sent = request.header("authorization").unwrap_or_default().to_owned();
        json_reply(401, &json!({"message": format!("who is {sent}?")}))
    })
    .await;
    let api = mock.api(|own| own.auth = auth(config));
    let ask = seen(called(&api, &users, Some("ada"), &needing(&["read"])).await);
    assert_eq!((&ask["code"], mock.requests().len()), (&json!("HTTP_401"), 2));
    assert!(!ask.to_string().contains("again-ada") && !ask.to_string().contains("old-token"), "{ask}");
}
