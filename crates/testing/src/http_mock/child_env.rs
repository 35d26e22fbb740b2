//! Environment of a child process whose HTTP calls go to the proxy and trust its authority.

use std::{fs, io, net::SocketAddr, path::Path};

use super::recorder::Local;

/// Root certificates of common systems.
const SYSTEM_ROOTS: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Writes the certificate, a bundle with the system's roots, and the preloads of Node and Python.
pub(super) fn write_files(dir: &Path, ca: &str) -> io::Result<()> {
    let roots = SYSTEM_ROOTS.iter().find_map(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    fs::write(dir.join("ca.pem"), ca)?;
    fs::write(dir.join("bundle.pem"), format!("{ca}\n{roots}"))?;
    fs::write(dir.join("preload.cjs"), include_str!("child/preload.cjs"))?;
    fs::create_dir(dir.join("python"))?;
    fs::write(dir.join("python/sitecustomize.py"), include_str!("child/sitecustomize.py"))
}

pub(super) fn variables(proxy: SocketAddr, dir: &Path, mocked: Local) -> Vec<(String, String)> {
    let proxy = format!("http://{proxy}");
    let file = |name: &str| dir.join(name).display().to_string();
    let (ca, bundle) = (file("ca.pem"), file("bundle.pem"));
    let (direct, mocked) = match mocked {
        Local::All => ("", "*".to_owned()),
        Local::Ports(ports) if ports.is_empty() => ("localhost,127.0.0.1,::1", String::new()),
        Local::Ports(ports) => ("", ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")),
    };
    let preload = format!("--require \"{}\"", file("preload.cjs"));
    let python = file("python");
    let variables: &[(&str, &str)] = &[
        ("HTTP_PROXY", &proxy),
        ("http_proxy", &proxy),
        ("HTTPS_PROXY", &proxy),
        ("https_proxy", &proxy),
        ("NO_PROXY", direct),
        ("no_proxy", direct),
        // Node
        ("NODE_USE_ENV_PROXY", "1"),
        ("NODE_EXTRA_CA_CERTS", &ca),
        ("NODE_OPTIONS", &preload),
        // Read by the preload: ports of this machine, or `*`.
        ("GATEWRIGHT_MOCKED_PORTS", &mocked),
        // OpenSSL, Go, rustls with the system's verifier, Python's urllib and httpx
        ("SSL_CERT_FILE", &bundle),
        // Python's requests, curl, git, Deno
        ("REQUESTS_CA_BUNDLE", &bundle),
        ("CURL_CA_BUNDLE", &bundle),
        ("GIT_SSL_CAINFO", &bundle),
        ("DENO_CERT", &ca),
        ("PYTHONPATH", &python),
    ];
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
