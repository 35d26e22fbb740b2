//! Checks of `server`, `auth` and `upstreams`.

use gatewright_findings::escape;

use super::Findings;
use crate::{
    mock_oauth::{Endpoint, Fault},
    server::Transport,
    suite::format::AuthSection,
};

impl Findings<'_> {
    pub(super) fn server(&mut self) {
        let server = &self.file.server;
        let targets = [&server.command, &server.url, &server.base_url].into_iter().flatten().count();
        if targets != 1 {
            self.add("/server", "it needs exactly one of `command` and `url` (or `baseUrl`)");
        }
        if let Some(url) = &server.url
            && !url.contains("${")
            && !url::Url::parse(url).is_ok_and(|url| url.has_host() && url.scheme().starts_with("http"))
        {
            self.add(
                "/server/url",
                format!("`{url}` is no http or https URL, such as http://127.0.0.1:3000/mcp"),
            );
        }
        self.header_names("/server", "headers", &server.headers);
        if !server.headers.is_empty() && server.transport == Transport::Stdio {
            self.add("/server/headers", "a server over stdio gets no headers");
        }
        for (name, user) in &self.file.users {
            self.described(&format!("/users/{}", escape(name)), user);
        }
        if server.command.is_none() && server.per_test {
            self.add("/server/perTest", "a server that runs already cannot be started for each test");
        }
        if server.command.is_none() && !self.file.http_mocks.is_empty() {
            self.add(
                "/httpMocks",
                "calls of a server that runs already cannot be mocked; start it with `command`",
            );
        }
        if server.command.is_none() && self.file.record_http.is_some() {
            self.add(
                "/recordHttp",
                "calls of a server that runs already cannot be recorded; start it with `command`",
            );
        }
        if server.command.is_none() && !self.file.upstreams.is_empty() {
            self.add(
                "/upstreams",
                "a server that runs already does not know their addresses; start it with `command`",
            );
        }
        let names_config = server.args.iter().any(|arg| arg.contains("{config}"));
        if server.config.is_some() != names_config {
            self.add(
                "/server/config",
                "`config` needs `{config}` in `args`, where its file is named, and that needs `config`",
            );
        }
        for (name, upstream) in &self.file.upstreams {
            for (tool, answers) in &upstream.tools {
                for (at, answer) in answers.answers.iter().enumerate() {
                    let given = [answer.value.is_some(), answer.response.is_some(), answer.error.is_some()];
                    if given.into_iter().filter(|given| *given).count() != 1 {
                        let place =
                            format!("/upstreams/{}/tools/{}/answers/{at}", escape(name), escape(tool));
                        self.add(&place, "it needs exactly one of `value`, `response` and `error`");
                    }
                }
            }
        }
        if let AuthSection::Issuer(issuer) = &self.file.auth {
            if issuer.issuer.is_some() && issuer.key.is_none() {
                self.add("/auth", "tokens of an issuer that runs already need its `key`");
            }
            for (endpoint, fault) in &issuer.faults {
                let place = format!("/auth/faults/{}", escape(endpoint));
                if issuer.issuer.is_some() {
                    self.add(&place, "an issuer that runs already has no faults of the suite");
                }
                if let Err(problem) = endpoint.parse::<Endpoint>() {
                    self.add(&place, problem);
                }
                if let Err(problem) = fault.parse::<Fault>()
                    && !fault.contains("${")
                {
                    self.add(&place, problem);
                }
            }
        }
    }
}
