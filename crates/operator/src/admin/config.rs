//! The `admin` section of the configuration.

use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

/// The admin listener. It is off without the section; `admin: {}` turns it on.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AdminConfig {
    /// Address to listen on. Default 127.0.0.1. Any that is not loopback needs `token`.
    pub host: IpAddr,
    /// Port; 0 takes a free one. Default 9464.
    pub port: u16,
    /// Secret that whoever connects shows: as a bearer token, or as the password of any user name. At least 16 characters.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// Host names by which it may be reached besides loopback, without a port.
    pub allowed_hosts: Vec<String>,
    /// Serves the console. Default true.
    pub console: bool,
    /// Shows scripts, arguments and answers that journals keep on the console. Default true.
    pub contents: bool,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 9464,
            token: None,
            allowed_hosts: Vec::new(),
            console: true,
            contents: true,
        }
    }
}

impl AdminConfig {
    /// Returns everything that keeps the listener from starting: the field, and the problem.
    pub fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        match &self.token {
            None if !self.host.is_loopback() => found.push((
                "token",
                "is needed when `admin.host` is not loopback: whoever reaches the listener may call every tool",
            )),
            Some(token) if token.expose_secret().chars().count() < 16 => {
                found.push(("token", "must have 16 characters or more"));
            }
            _ => {}
        }
        found
    }
}
