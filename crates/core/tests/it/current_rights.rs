//! Callers whose requests go on while the configuration changes.

use std::{
    sync::{Arc, Mutex},
    time::SystemTime,
};

use futures::{FutureExt as _, future::BoxFuture};
use gatewright_core::{
    App, AppOptions, AuthRefusal, Authenticator, Caller, InvokeError, Invoker, LocalApp, Principal,
    RecordsError, Registry, ToolNames,
};
use http::request::Parts;

use crate::{access::granted, support::Handler};

/// Knows the scopes of everybody, as they are now; none once nobody has access.
#[derive(Default)]
struct Knows(Mutex<Option<Principal>>);

impl Authenticator for Knows {
    fn authenticate<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        unreachable!("no request comes over HTTP")
    }

    fn principal_now<'a>(
        &'a self,
        _: &'a Principal,
        _: SystemTime,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Principal>, RecordsError>> {
        std::future::ready(Ok(self.0.lock().unwrap().clone())).boxed()
    }

    fn insufficient_scope(&self, _: &Principal, _: &[String]) -> AuthRefusal {
        unreachable!("no request comes over HTTP")
    }
}

async fn app() -> Arc<dyn App> {
    Arc::new(LocalApp::start(Handler::with(&["pay"])).await.unwrap())
}

fn secret() -> AppOptions {
    AppOptions { scopes: vec!["s1".to_owned()], ..AppOptions::default() }
}

#[tokio::test]
async fn a_request_that_goes_on_has_the_rights_of_the_new_configuration() {
    let registry = Registry::new(ToolNames::default());
    registry.set(vec![("a".to_owned(), app().await, secret())]);
    let knows = Arc::new(Knows::default());
    registry.callers_of(&(knows.clone() as Arc<dyn Authenticator>));
    let invoker = Invoker::new(registry.clone());
    let caller = Caller::new(granted("ada", "s1"));
    let find = async |caller: &Caller| invoker.find("a:pay", caller).await.map(drop);
    assert!(find(&caller).await.is_ok(), "nobody is asked while nothing changes");

    // The key of the caller is narrowed, and another server takes the name of the app.
    *knows.0.lock().unwrap() = Some(granted("ada", ""));
    registry.set(vec![("a".to_owned(), app().await, secret())]);
    assert!(matches!(find(&caller).await, Err(InvokeError::MissingScopes { .. })));
    assert!(find(&Caller::new(granted("bob", "s1"))).await.is_ok(), "a request that came later");

    // The key is gone.
    *knows.0.lock().unwrap() = None;
    let error = find(&caller).await.unwrap_err();
    assert!(matches!(error, InvokeError::Forbidden { .. }), "{error}");
    assert!(error.to_string().contains("has ended"), "{error}");

    // Its scopes are back: with the same apps, when the configuration says so.
    *knows.0.lock().unwrap() = Some(granted("ada", "s1"));
    let late = Caller::new(granted("ada", "s1"));
    assert!(find(&caller).await.is_ok() && find(&late).await.is_ok());
    *knows.0.lock().unwrap() = None;
    assert!(find(&late).await.is_ok());
    registry.renew_callers();
    assert!(find(&late).await.is_err());
}
