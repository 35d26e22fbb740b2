//! The configuration of `docs/quickstart/production.md`, as it stands there: a Redis with TLS, two instances, one of them killed in the middle.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::json;

use crate::{
    gate::{CALLBACK, Gate, Person, Site, parameter, password_hash},
    support::gatewright,
};

const PAGE: &str = include_str!("../../../../docs/quickstart/production.md");
const PUBLIC: &str = "https://mcp.example.com";

/// The configuration on the page.
fn example() -> &'static str {
    PAGE.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0
}

/// A Redis that speaks TLS only and wants a password; gone when dropped.
pub struct Redis {
    child: Child,
    pub port: u16,
    folder: tempfile::TempDir,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Redis {
    pub fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        write_certificates(folder.path());
        let file = |name: &str| folder.path().join(name).display().to_string();
        let mut child = Command::new("redis-server")
            .args([
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
                "--requirepass",
                "of-the-store",
            ])
            .args(["--port", "0", "--tls-auth-clients", "no", "--tls-port", &port.to_string()])
            .args(["--tls-cert-file", &file("server.pem"), "--tls-key-file", &file("server.key")])
            .args(["--tls-ca-cert-file", &file("ca.pem"), "--dir", &folder.path().display().to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("Ready to accept connections")), "redis-server started");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port, folder }
    }

    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}

/// An authority, and a certificate for 127.0.0.1 signed by it.
fn write_certificates(folder: &Path) {
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    ca.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let issuer = rcgen::Issuer::new(ca, ca_key);
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned()];
    let certificate = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    for (name, text) in [
        ("server.pem", certificate.pem()),
        ("server.key", key.serialize_pem()),
        ("ca.pem", ca_certificate.pem()),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

fn variables(redis: &Redis) -> Vec<(&'static str, String)> {
    let key = Command::new(gatewright()).args(["key", "generate"]).output().unwrap();
    vec![
        ("REDIS_HOST", "127.0.0.1".to_owned()),
        ("REDIS_PORT", redis.port.to_string()),
        ("REDIS_PASSWORD", "of-the-store".to_owned()),
        ("REDIS_CA_FILE", redis.ca().display().to_string()),
        ("JWT_SIGNING_KEY", String::from_utf8(key.stdout).unwrap()),
        ("GATEWRIGHT_ENCRYPTION_KEY", "X8k2vQ7mN4pR9sT1wZ6bC3dF5gH0jL_y".to_owned()),
        ("GATEWRIGHT_CLUSTER_KEY", "p3Vx8Kq1Zt6Wb9Rm2Yc5Ng7Hd0Jf4Ls_".to_owned()),
        ("ADA_PASSWORD_HASH", password_hash()),
        ("PROXY_IP", "127.0.0.1".to_owned()),
    ]
}

#[tokio::test]
async fn the_readme_example_is_fit_for_production_and_loses_nothing_when_an_instance_is_killed() {
    let redis = Redis::start();
    let variables = variables(&redis);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gatewright.yaml");
    std::fs::write(&file, example()).unwrap();
    let checked = Command::new(gatewright())
        .args(["check", "--production", "--config"])
        .arg(&file)
        .envs(variables.iter().map(|(name, value)| (*name, value)))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");

    let start = || Site::launch("yaml", example(), &variables, &["--host", "127.0.0.1", "--port", "0"]);
    let (mut first, second) = (start(), start());
    let both = Gate::new(PUBLIC, vec![first.base.clone(), second.base.clone()]);

    // Every request goes to the other instance than the one before.
    let ask = both.ask("acme-desktop", CALLBACK, "crm:read");
    let mut ada = Person::default();
    let callback = ada.authorize(&both, &ask).await;
    assert_eq!(parameter(&callback, "iss"), PUBLIC);
    let tokens = both.redeem("acme-desktop", CALLBACK, &parameter(&callback, "code")).await.json();
    let token = tokens["access_token"].as_str();
    for _ in 0..2 {
        assert_eq!(both.mcp(token, "tools/list", json!({})).await.status, 200);
    }

    // Another person is at the login page when the instance that showed it is killed.
    let only_first = Gate::new(PUBLIC, vec![first.base.clone()]);
    let mut grace = Person::default();
    let page = grace.open(&only_first, &ask).await;
    let page = match page.header("location") {
        "" => page,
        location => grace.open(&only_first, location).await,
    };
    assert!(page.body.contains("name=\"password\""), "{}", page.body);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let answer = grace.submit(&both, &page.body).await;
    let callback = grace.finish(&both, answer).await;

    // Its successor takes part: code, tokens, refresh tokens, logins and consents are all there.
    let third = start();
    let after = Gate::new(PUBLIC, vec![third.base.clone(), second.base.clone()]);
    let redeemed = after.redeem("acme-desktop", CALLBACK, &parameter(&callback, "code")).await;
    assert_eq!(redeemed.status, 200, "{}", redeemed.body);
    for _ in 0..2 {
        assert_eq!(after.mcp(token, "tools/list", json!({})).await.status, 200);
    }
    let fields = [
        ("grant_type", "refresh_token"),
        ("client_id", "acme-desktop"),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
    ];
    let refreshed = after.token(&fields).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.body);
    let forms = ada.hidden.len();
    let again = ada.authorize(&after, &ask).await;
    // Login and consent were a form each. The login is remembered; a public client on the user's computer always gets the consent page.
    assert_eq!(ada.hidden.len(), forms + forms / 2, "only the consent page is shown again");
    let code = parameter(&again, "code");
    assert_eq!(after.redeem("acme-desktop", CALLBACK, &code).await.status, 200);
    assert_eq!(after.redeem("acme-desktop", CALLBACK, &code).await.json()["error"], "invalid_grant");
}
