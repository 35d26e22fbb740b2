//! Production findings about connections and about whom the server trusts: secrets without TLS, proxies that are everybody, and
//! protections that are off.

use std::net::IpAddr;

use gatewright_auth::config::trusts_everybody;
use gatewright_codecall::{Adapter, StoreConfig};
use gatewright_findings::{Finding, escape};
use reqwest::Url;

use super::{AppKind, Config};

/// Every setting of a section besides `auth` that is open to more than its operator means.
pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut when = |broken: bool, path: &str, problem: &str, fix: &str| {
        if broken {
            findings.push(Finding::new(path, format!("{problem}; fix: {fix}")));
        }
    };
    let (http, codecall) = (&config.http, &config.codecall);
    when(
        http.trusted_proxies.iter().any(|network| trusts_everybody(network)),
        "/http/trustedProxies",
        "whoever connects is believed about the caller's address and about HTTPS",
        "name the addresses or the networks of your proxies, /8 or smaller",
    );
    when(
        http.allowed_origins.iter().any(|origin| origin == "null"),
        "/http/allowedOrigins",
        "`null` is the origin of every sandboxed frame and local file",
        "name the origins of your own pages",
    );
    when(
        codecall.enabled && codecall.worker.adapter == Adapter::InProcess,
        "/codecall/worker/adapter",
        "scripts run in the server's own process, without a sandbox",
        "leave it out, or use `worker_threads`",
    );
    for (field, is_on) in [
        ("removeStackTraces", codecall.sanitization.remove_stack_traces),
        ("removeFilePaths", codecall.sanitization.remove_file_paths),
    ] {
        when(
            codecall.enabled && !is_on,
            &format!("/codecall/sanitization/{field}"),
            "errors show callers how the server is built and where it runs",
            "set it to true",
        );
    }
    let redis = http.cluster.as_ref().and_then(|cluster| gatewright::redis_endpoint(cluster).ok().flatten());
    when(
        redis.is_some_and(|redis| !redis.tls && !is_this_machine(&redis.host)),
        "/http/cluster/redis",
        "requests between instances pass a Redis on another machine without TLS",
        "begin the address with `rediss`",
    );
    let otlp = config.telemetry.otlp.as_ref();
    when(
        otlp.is_some_and(|otlp| !otlp.headers.is_empty() && is_plain_remote(otlp.endpoint.as_str())),
        "/telemetry/otlp/endpoint",
        "the collector's headers, which may hold a key, are sent to another machine without TLS",
        "use an https address",
    );
    let store = &codecall.embedding.store;
    when(
        codecall.enabled
            && matches!(store, StoreConfig::Pgvector { url, .. } if !host(url.expose()).is_some_and(|host| is_this_machine(&host))),
        "/codecall/embedding/store/url",
        "the password of the database and what is stored there pass another machine without TLS",
        "reach the database through a TLS tunnel on this machine, or keep vectors in a file",
    );
    when(
        config.admin.as_ref().is_some_and(|admin| admin.host.is_unspecified()),
        "/admin/host",
        "the administration listens on every network of this machine, over plain HTTP",
        "use 127.0.0.1, or the address of the network that operators use",
    );
    for (id, app) in &config.apps {
        let AppKind::Upstream(upstream) = &app.kind else { continue };
        let in_url = upstream.url.as_deref().is_some_and(may_hold_secret);
        let has_secret = upstream.auth.is_some() || !upstream.headers.is_empty() || in_url;
        when(
            has_secret && upstream.url.as_deref().is_some_and(is_plain_remote),
            &format!("/apps/{}/url", escape(id)),
            "tokens, headers, or the password or query of the address are sent to another machine without TLS",
            "use an https address",
        );
    }
    findings
}

/// The host of an address, without the brackets of IPv6.
fn host(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    Some(url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned())
}

/// Returns `true` for an address with a user, a password or a query.
fn may_hold_secret(address: &str) -> bool {
    Url::parse(address)
        .is_ok_and(|url| !url.username().is_empty() || url.password().is_some() || url.query().is_some())
}

fn is_plain_remote(address: &str) -> bool {
    address.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"))
        && !host(address).is_some_and(|host| is_this_machine(&host))
}

fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}
