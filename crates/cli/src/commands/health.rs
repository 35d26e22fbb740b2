//! `gatewright health`: checks a running server.

use std::process::ExitCode;

use anyhow::Context as _;
use reqwest::{Url, redirect::Policy};

use crate::{args::HealthArgs, exit, output::outln};

/// Prints the response of the server. Exit code 0 if it is healthy, 1 otherwise.
pub async fn run(args: HealthArgs) -> anyhow::Result<ExitCode> {
    let path = if args.ready { "readyz" } else { "healthz" };
    let url = format!("{}/{path}", args.url.trim_end_matches('/'));
    // A proxy of the environment would respond instead of the server.
    let mut client = reqwest::Client::builder().timeout(args.timeout).no_proxy().redirect(Policy::none());
    let parsed = Url::parse(&url).ok();
    if parsed.as_ref().is_some_and(|url| url.scheme() == "http") {
        // Small images have no CA certificates; plain HTTP needs none.
        client = client.tls_certs_only([]);
    } else if parsed.as_ref().is_some_and(is_this_machine) {
        // The certificate names the public host. Nothing secret is sent, and loopback cannot be intercepted.
        client = client.tls_danger_accept_invalid_certs(true);
    }
    let client = client.build().context("install `ca-certificates`, or name a file with SSL_CERT_FILE")?;
    let answer = client.get(&url).send().await.with_context(|| format!("no server responds at {url}"))?;
    let status = answer.status();
    let body = answer.text().await.with_context(|| format!("the response of {url} breaks off"))?;
    outln!("{}", body.trim_end())?;
    Ok(if status.is_success() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn is_this_machine(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        None => false,
    }
}
