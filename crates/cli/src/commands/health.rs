//! `gatewright health`: asks a running server whether it is well.

use std::process::ExitCode;

use anyhow::Context as _;
use reqwest::{Url, redirect::Policy};

use crate::{args::HealthArgs, exit};

/// Prints what the server says. Exit code 0 when it is well, 1 otherwise.
pub async fn run(args: HealthArgs) -> anyhow::Result<ExitCode> {
    let path = if args.ready { "readyz" } else { "healthz" };
    let url = format!("{}/{path}", args.url.trim_end_matches('/'));
    // A proxy that the environment names is not the server.
    let mut client = reqwest::Client::builder().timeout(args.timeout).no_proxy().redirect(Policy::none());
    let parsed = Url::parse(&url).ok();
    if parsed.as_ref().is_some_and(|url| url.scheme() == "http") {
        // Small images have no CA certificates, and nothing here needs them.
        client = client.tls_certs_only([]);
    } else if parsed.as_ref().is_some_and(is_this_machine) {
        // Its certificate names the public host. Nothing secret is sent, and nobody else answers on loopback.
        client = client.tls_danger_accept_invalid_certs(true);
    }
    let client = client.build().context("install `ca-certificates`, or name a file with SSL_CERT_FILE")?;
    let answer = client.get(&url).send().await.with_context(|| format!("no server answers at {url}"))?;
    let status = answer.status();
    let body = answer.text().await.with_context(|| format!("the answer of {url} breaks off"))?;
    println!("{}", body.trim_end());
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
