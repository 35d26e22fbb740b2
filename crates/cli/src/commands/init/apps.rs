//! Servers of clients as apps: variables as ours, secrets apart, and what cannot run set aside.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gatewright_upstream::{McpServer, names_credential};
use reqwest::Url;
use serde_json::{Map, Value};

use crate::config::{AppConfig, env_file, places_of_editors, try_filling};

/// Folder of secrets, beside the configuration.
pub const SECRETS: &str = "gatewright.secrets";

/// One server as an app.
pub struct NewApp {
    /// Its id.
    pub id: String,
    /// Its keys. Secrets are in files.
    pub keys: Map<String, Value>,
    /// Its origin, for people.
    pub from: String,
    /// Files of secrets, by name in the folder [`SECRETS`].
    pub secrets: Vec<(String, String)>,
    /// The reason why it cannot run as it is.
    pub blocked: Option<String>,
    /// Keys that were left out.
    pub ignored: Vec<String>,
}

impl NewApp {
    /// Makes an app of a server in `file`. `here` is the folder in which a project's paths start.
    pub fn of(
        server: McpServer,
        id: String,
        from: String,
        file: &Path,
        here: &Path,
        environment: &HashMap<String, String>,
    ) -> Self {
        let mut app =
            Self { id, keys: server.keys, from, secrets: Vec::new(), blocked: None, ignored: server.ignored };
        let folder = file.parent().unwrap_or(Path::new(""));
        let places = places_of_editors(environment, here);
        app.blocked = app.read_env_file(&places, folder).err();
        let mut keys = Value::Object(std::mem::take(&mut app.keys));
        each_string(&mut keys, &mut |text| *text = in_our_words(text, &places));
        let trial = try_filling(&keys, environment, folder);
        app.keys = match keys {
            Value::Object(keys) => keys,
            _ => Map::new(),
        };
        let checked = trial.and_then(|filled| match filled {
            Value::Object(filled) => AppConfig::check(&filled),
            _ => Ok(()),
        });
        app.blocked = app.blocked.take().or(checked.err());
        app.set_secrets_apart();
        app
    }

    /// Adds the variables of the file that `envFile` names.
    fn read_env_file(&mut self, places: &HashMap<String, String>, folder: &Path) -> Result<(), String> {
        let Some(file) = self.keys.shift_remove("envFile") else { return Ok(()) };
        let path = PathBuf::from(in_our_words(file.as_str().unwrap_or_default(), places));
        let mut env: Map<String, Value> = env_file::read(&folder.join(path))?
            .into_iter()
            .map(|(name, value)| (name, literal(&value).into()))
            .collect();
        if let Some(Value::Object(own)) = self.keys.shift_remove("env") {
            env.extend(own);
        }
        self.keys.insert("env".to_owned(), env.into());
        Ok(())
    }

    /// Replaces secrets in clear by files.
    fn set_secrets_apart(&mut self) {
        let (id, secrets) = (&self.id, &mut self.secrets);
        let mut apart = |name: &str, value: &mut Value| {
            let Some(text) = value.as_str().filter(|text| !text.is_empty() && !text.contains("${")) else {
                return;
            };
            let sound = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
            let file: String = format!("{id}.{name}").chars().map(sound).collect();
            secrets.push((file.clone(), text.replace("$$", "$")));
            *value = format!("${{file:{SECRETS}/{file}}}").into();
        };
        if let Some(Value::Object(env)) = self.keys.get_mut("env") {
            env.iter_mut()
                .filter(|(name, value)| is_secret(name, value))
                .for_each(|(name, value)| apart(name, value));
        }
        if let Some(Value::Object(headers)) = self.keys.get_mut("headers") {
            headers.iter_mut().for_each(|(name, value)| apart(name, value));
        }
        if let Some(url) = self.keys.get_mut("url").filter(|url| url.as_str().is_some_and(has_secret)) {
            apart("url", url);
        }
        if let Some(Value::Array(args)) = self.keys.get_mut("args") {
            let mut after_flag = false;
            for (at, value) in args.iter_mut().enumerate() {
                let text = value.as_str().unwrap_or_default().to_owned();
                let is_flag = text.starts_with('-');
                let assigned = text
                    .split_once('=')
                    .filter(|(name, value)| is_flag && is_secret(name, &Value::from(*value)));
                if (after_flag && !is_flag) || assigned.is_some() || is_secret("", value) {
                    apart(&format!("args.{at}"), value);
                }
                after_flag = is_flag && !text.contains('=') && is_secret(&text, &Value::Null);
            }
        }
    }
}

/// Returns true if the value of a variable or option with this name is a secret. An address is one only if it has a secret in it.
fn is_secret(name: &str, value: &Value) -> bool {
    let rest = name.to_ascii_lowercase().replace("url", "").replace("uri", "");
    names_credential(&rest) || value.as_str().is_some_and(|text| has_secret(text) || looks_like_token(text))
}

/// Returns true for an address with a password, or with a query whose name is that of a credential.
fn has_secret(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        url.password().is_some() || url.query_pairs().any(|(name, _)| names_credential(&name))
    })
}

/// Returns true for text that begins like the tokens of well-known services.
fn looks_like_token(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["ghp_", "github_pat_", "glpat-", "sk-", "xoxb-", "xoxp-", "AKIA", "Bearer "];
    text.len() >= 16 && BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

fn each_string(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_string(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_string(field, change)),
        _ => {}
    }
}

/// Text that no variable is read in.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// `${env:NAME}` as `${NAME}`, and the places that editors know as what they are.
fn in_our_words(text: &str, places: &HashMap<String, String>) -> String {
    let mut text = text.replace("${env:", "${");
    for (name, place) in places {
        text = text.replace(&format!("${{{name}}}"), place);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn app(keys: Value) -> NewApp {
        let file = json!({"mcpServers": {"a": keys}});
        let server = gatewright_upstream::mcp_servers(&file).unwrap().remove(0);
        let environment = HashMap::from([("HOME".to_owned(), "/home/u".to_owned())]);
        NewApp::of(
            server,
            "a".to_owned(),
            "Cursor".to_owned(),
            Path::new("/p/.cursor/mcp.json"),
            Path::new("/p"),
            &environment,
        )
    }

    #[test]
    fn secrets_go_into_files_and_everything_else_stays() {
        let app = app(json!({
            "command": "x", "args": ["--api-key", "k1", "--token=k2", "plain", "ghp_0123456789abcdef", "${workspaceFolder}/d"],
            "env": {"API_KEY": "k3", "LEVEL": "debug", "OTHER_TOKEN": "${env:HOME}"}}));
        assert_eq!(app.blocked, None);
        let file = |name: &str| format!("${{file:gatewright.secrets/a.{name}}}");
        assert_eq!(
            app.keys["args"],
            json!(["--api-key", file("args.1"), file("args.2"), "plain", file("args.4"), "/p/d"])
        );
        assert_eq!(
            app.keys["env"],
            json!({"API_KEY": file("API_KEY"), "LEVEL": "debug", "OTHER_TOKEN": "${HOME}"})
        );
        let values: Vec<&str> = app.secrets.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["k3", "k1", "--token=k2", "ghp_0123456789abcdef"]);
        let web = self::app(json!({"url": "https://u:pw@x.example/mcp", "headers": {"X-Any": "v"}}));
        assert_eq!(
            web.keys,
            *json!({"url": file("url"), "headers": {"X-Any": file("X-Any")}}).as_object().unwrap()
        );
    }

    #[test]
    fn a_server_that_cannot_run_is_set_aside_with_the_reason() {
        for (keys, says) in [
            (json!({"command": "x", "env": {"T": "${input:my-token}"}}), "`${MY_TOKEN}`"),
            (json!({"url": "https://x.example/${NOT_SET}"}), "NOT_SET is not set"),
            (json!({"command": "x", "envFile": "/nowhere/.env"}), "`envFile` cannot be used"),
            (json!({"comand": "x"}), "needs `command`"),
            (json!({"command": "x", "args": ["${command:id}"]}), "runs only in the configuration"),
            (
                json!({"url": "https://x.example", "headers": {"X": "${file:/etc/passwd}"}}),
                "`${file:…}` is read only",
            ),
            (json!({"command": "x", "env": {"X": "a ${file:.env:-b}"}}), "`${file:…}` is read only"),
        ] {
            let blocked = app(keys).blocked.unwrap_or_default();
            assert!(blocked.contains(says), "{says}: {blocked}");
        }
    }
}
