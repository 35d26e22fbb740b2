//! The login and consent pages, filled in.

use axum::response::{IntoResponse as _, Response};
use http::header;
use url::Url;

use super::{passkeys::prompt::login_prompt, request_check::VerifiedRequest, services::Services};
use crate::{
    config::LoginMethod,
    pages::{self, FormStep, OfferedScope, Page},
    records::{AuthorizationRequest, Consent, LoginFailure},
    redirect_uri,
    web::responses::form_target,
};

/// Returns the login page, with the failure of the last try, if it failed.
pub(crate) fn login_page(
    services: &Services,
    id: &str,
    request: &AuthorizationRequest,
    browser: &str,
) -> Response {
    let ctx = &services.ctx;
    let csrf = services.authorizations.csrf_token(browser, "login", id);
    let step = FormStep { action: &ctx.url("/oauth/login"), pending: id, csrf: &csrf };
    let page = pages::login(&pages::LoginPage {
        server: &ctx.deployment.name,
        client: &request.client_name,
        step: &step,
        hint: request.login.hint.as_deref(),
        failure: request.failure.map(|failure| (failure, ctx.clock.now_ms())),
        demo: ctx.config.local.login == LoginMethod::Demo,
        passkey: login_prompt(services, id, browser).as_ref(),
    });
    let account = services.account_url().filter(|_| request.return_path.is_none());
    let form_target = form_target(&request.grant.redirect);
    let mut response = Page { form_target, account, ..page }.into_response();
    if let Some(LoginFailure::Locked { until_ms }) = request.failure
        && let left @ 1.. = until_ms.saturating_sub(ctx.clock.now_ms()).div_ceil(1000)
    {
        response.headers_mut().insert(header::RETRY_AFTER, left.into());
    }
    response
}

/// Returns the consent page. `before` is the consent that the user gave earlier.
pub(super) fn consent_page(
    services: &Services,
    id: &str,
    verified: &VerifiedRequest,
    browser: &str,
    before: Option<&Consent>,
) -> Response {
    let VerifiedRequest { request, client, scopes, .. } = verified;
    let ctx = &services.ctx;
    let csrf = services.authorizations.csrf_token(browser, "consent", id);
    let step = FormStep { action: &ctx.url("/oauth/consent"), pending: id, csrf: &csrf };
    let offered: Vec<OfferedScope<'_>> = scopes
        .names()
        .iter()
        .map(|scope| {
            let is_new = before.is_some_and(|consent| !consent.answered.contains(scope));
            let was_refused = before.is_some_and(|consent| !is_new && !consent.allowed.contains(scope));
            OfferedScope { scope, words: words(services, scope), is_new, is_ticked: !was_refused }
        })
        .collect();
    let redirect = Url::parse(&request.grant.redirect).ok();
    let host = |url: &Url| url.host_str().map_or_else(|| format!("{}:", url.scheme()), str::to_owned);
    let client_host = Url::parse(&client.id).ok().filter(|url| url.host().is_some());
    let loopback =
        redirect.as_ref().is_some_and(|url| url.scheme() == "http" && redirect_uri::is_loopback_host(url));
    let user = request.grant.sub.split_once(':').map_or(request.grant.sub.as_str(), |(_, name)| name);
    let apps = services.apps_in_reach(scopes.names());
    let page = pages::consent(
        &pages::ConsentPage {
            server: &ctx.deployment.name,
            user: &pages::plain(user, 80),
            client: &pages::plain(&client.name, 80),
            client_host: &client_host.as_ref().map_or_else(|| pages::plain(&client.id, 80), host),
            redirect_host: &redirect.as_ref().map_or_else(String::new, host),
            loopback,
            resource: &request.grant.resources.join(" "),
            offered: &offered,
            apps: apps.as_deref(),
            words: &|scope| words(services, scope).to_owned(),
        },
        &step,
    );
    let (form_target, account) = (form_target(&request.grant.redirect), services.account_url());
    Page { form_target, account, ..page }.into_response()
}

/// Returns the meaning of a scope in words.
fn words<'a>(services: &'a Services, scope: &'a str) -> &'a str {
    match (services.ctx.config.scopes.get(scope).map(String::as_str), scope) {
        (Some(words), _) if !words.is_empty() => words,
        (_, "offline_access") => "Keep access while you are away",
        (_, "openid") => "Know who you are",
        (_, "profile") => "See your name",
        (_, "email") => "See your mail address",
        (_, other) => other,
    }
}
