//! `http.tls`: HTTPS from the binary itself, and a certificate that is exchanged while it serves.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::json;

use crate::{served::Served, support::gatewright};

/// Writes a new self-signed pair; its certificate.
fn write_pair(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
    // Each file whole at once, as tools that renew certificates do.
    for (name, text) in [("key.pem", made.signing_key.serialize_pem()), ("cert.pem", made.cert.pem())] {
        fs::write(folder.join("new"), text).unwrap();
        fs::rename(folder.join("new"), folder.join(name)).unwrap();
    }
    made.cert.pem()
}

fn config(folder: &Path) -> String {
    let file = |name: &str| folder.join(name);
    json!({
        "http": {"tls": {"cert": file("cert.pem"), "key": file("key.pem")}},
        "apps": {"crm": {"builtin": "crm"}},
        "codecall": {"worker": {"workers": 1}},
    })
    .to_string()
}

/// A client that trusts this certificate alone and makes a connection for each request.
fn client(certificate: &str) -> reqwest::Client {
    let certificate = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    reqwest::Client::builder().tls_certs_only([certificate]).pool_max_idle_per_host(0).build().unwrap()
}

#[tokio::test]
async fn a_certificate_is_exchanged_while_the_server_runs_and_a_bad_one_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let first = write_pair(folder.path());
    let served = Served::start(&config(folder.path()), &[]);
    let url = format!("https://{}/healthz", served.address);
    assert_eq!(client(&first).get(&url).send().await.unwrap().status(), 200);

    // A client that keeps its connection uses it on.
    let certificate = reqwest::Certificate::from_pem(first.as_bytes()).unwrap();
    let kept = reqwest::Client::builder().tls_certs_only([certificate]).build().unwrap();
    kept.get(&url).send().await.unwrap().bytes().await.unwrap();

    let second = write_pair(folder.path());
    served.says("the certificate was reloaded after a changed file");
    assert_eq!(client(&second).get(&url).send().await.unwrap().status(), 200);
    assert!(client(&first).get(&url).send().await.is_err(), "the old certificate is presented no more");
    assert_eq!(kept.get(&url).send().await.unwrap().status(), 200, "an open connection was dropped");

    fs::write(folder.path().join("key.pem"), "half a file").unwrap();
    let told = served.says("the previous one stays in use");
    assert!(told.contains("http.tls.key") && told.contains("key.pem"), "{told}");
    assert_eq!(client(&second).get(&url).send().await.unwrap().status(), 200);

    let health = Command::new(gatewright())
        .args(["health", "--url", &format!("https://{}", served.address)])
        .output()
        .unwrap();
    assert!(health.status.success(), "{health:?}");
}

fn refused(config: &str) -> Output {
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    fs::write(file.path(), config).unwrap();
    Command::new(gatewright()).args(["serve", "--port", "0", "--config"]).arg(file.path()).output().unwrap()
}

#[test]
fn a_server_with_an_unusable_certificate_does_not_start_and_names_the_key() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_pair(folder.path());
    write_pair(other.path());
    fs::copy(other.path().join("key.pem"), folder.path().join("key.pem")).unwrap();
    let output = refused(&config(folder.path()));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("http.tls.key") && told.contains("is not the key of the certificate"), "{told}");
    fs::remove_file(folder.path().join("cert.pem")).unwrap();
    let output = refused(&config(folder.path()));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("http.tls.cert"), "{told}");
}
