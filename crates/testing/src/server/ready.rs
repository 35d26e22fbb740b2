//! Starting a process and waiting until its server is ready.

use std::{net::Ipv4Addr, time::Duration};

use tokio::time::Instant;

use super::{
    builder::ServerBuilder,
    error::StartError,
    log_ring::LogRing,
    port,
    process::{Output, Process, spawn_advice},
    program,
    running::Server,
    state::{Hosting, ServerInfo},
};
use crate::base::{lock, net::direct_client};

/// Default time until a server must respond.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Attempts if the port turns out to be taken.
const MAX_ATTEMPTS: u32 = 3;

/// Advice for a server that ended. A stdio server does so when its input is empty.
const ENDED_ADVICE: &str = "run the command by hand and look at its last lines above; when it talks over standard input and output, set `transport` to stdio";

impl ServerBuilder {
    /// Starts the server and waits until it is ready.
    ///
    /// # Errors
    /// The program cannot be run, ends at once, or does not respond in time.
    pub async fn start(self) -> Result<Server, StartError> {
        if self.base_url.is_none()
            && let Some((problem, advice)) =
                program::missing_script(&self.server, self.current_dir.as_deref())
        {
            return Err(StartError {
                advice,
                ..self.failure(self.port.unwrap_or(0), problem, &LogRing::default())
            });
        }
        let server = Server::with_options(self);
        server.start().await?;
        Ok(server)
    }
}

impl Server {
    pub(super) async fn start(&self) -> Result<(), StartError> {
        let options = &self.state.options;
        match &self.state.hosting {
            Hosting::InMemory(_) | Hosting::Stdio | Hosting::Leased => Ok(()),
            Hosting::External => {
                let base_url = options.base_url.clone().unwrap_or_default();
                let url = url::Url::parse(&base_url).ok();
                let port = url.and_then(|url| url.port_or_known_default()).unwrap_or_default();
                *lock(&self.state.info) = ServerInfo { base_url, port, pid: 0 };
                Ok(())
            }
            Hosting::Process => {
                let mut attempts = 0;
                loop {
                    attempts += 1;
                    let error = match self.start_child().await {
                        Ok(()) => return Ok(()),
                        Err(error) => error,
                    };
                    let taken = error.log_tail.iter().any(|line| is_port_taken(line));
                    if !taken || options.port.is_some() || attempts == MAX_ATTEMPTS {
                        return Err(error);
                    }
                    // Reserves another port.
                    lock(&self.state.info).port = 0;
                }
            }
        }
    }

    pub(super) async fn start_child(&self) -> Result<(), StartError> {
        let (options, log) = (&self.state.options, &self.state.log);
        let before = lock(&self.state.info).port;
        let reserved = match (options.port, before) {
            (Some(port), _) => port,
            (None, 0) => {
                port::reserve().map_err(|error| options.failure(0, format!("no free port: {error}"), log))?
            }
            (None, before) => before,
        };
        let output = match &options.log_file {
            Some(file) => Output::File(file),
            None => Output::Log,
        };
        let spawned = Process::spawn(
            options.command(reserved),
            output,
            log,
            options.stop_timeout,
            &self.state.last_exit,
        );
        let (mut process, _) = spawned.map_err(|error| StartError {
            advice: spawn_advice(&error),
            ..options.failure(reserved, format!("it cannot be run: {error}"), log)
        })?;
        let timeout = options.startup_timeout.unwrap_or(STARTUP_TIMEOUT);
        let deadline = Instant::now() + timeout;
        let client =
            direct_client("http://").map_err(|error| options.failure(reserved, error.to_string(), log))?;
        let mut rounds = 0u32;
        let port = loop {
            if let Some(status) = process.exited() {
                // The last lines may still be on their way.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let failure = options.failure(reserved, "it ended before it answered".into(), log);
                let taken = failure.log_tail.iter().any(|line| is_port_taken(line));
                let advice = match taken {
                    true => {
                        format!("port {reserved} is taken: leave `port` out, so that a free one is chosen")
                    }
                    false => ENDED_ADVICE.into(),
                };
                return Err(StartError { exit: Some(status.to_string()), advice, ..failure });
            }
            let ready = self.responds(&client, reserved).await;
            if ready && !is_another_process_on(reserved, process.pid()) {
                break reserved;
            }
            // The server may have chosen another port, or listen on further ones first. Checked seldom, as it means reading all
            // processes.
            if rounds % 40 == 39
                && let Some(other) = self.other_port(reserved, process.pid())
                && self.responds(&client, other).await
            {
                log.push(format!("[gatewright-testing] it listens on port {other}, not on PORT={reserved}"));
                break other;
            }
            if Instant::now() >= deadline {
                let problem = format!("it did not answer on port {reserved} within {timeout:?}");
                let listens = port::listening(process.pid());
                let failure = options.failure(reserved, problem, log);
                process.stop().await;
                let advice = match listens.as_slice() {
                    [] => format!(
                        "let it listen on the port in the environment variable PORT (or `{{port}}` in `args`), or raise `{}`; a server over standard input and output needs `transport` stdio",
                        options.startup_option
                    ),
                    ports => format!(
                        "it listens on {ports:?} but gives no HTTP answer to GET {}",
                        options.ready_path
                    ),
                };
                return Err(StartError {
                    exit: Some("still running; it was ended".into()),
                    advice,
                    ..failure
                });
            }
            rounds += 1;
            tokio::time::sleep(Duration::from_millis(if rounds < 20 { 5 } else { 25 })).await;
        };
        let base_url = format!("http://{}:{port}", Ipv4Addr::LOCALHOST);
        *lock(&self.state.info) = ServerInfo { base_url, port, pid: process.pid() };
        *self.state.process.lock().await = Some(process);
        Ok(())
    }

    /// True if the server of another process still answers on its port.
    pub(super) async fn answers(&self, port: u16) -> bool {
        match direct_client("http://") {
            Ok(client) => self.responds(&client, port).await,
            Err(_) => false,
        }
    }

    async fn responds(&self, client: &reqwest::Client, port: u16) -> bool {
        let url = format!("http://{}:{port}{}", Ipv4Addr::LOCALHOST, self.state.options.ready_path);
        let answer = client.get(url).timeout(Duration::from_secs(2)).send().await;
        answer.is_ok_and(|answer| answer.status() != reqwest::StatusCode::SERVICE_UNAVAILABLE)
    }

    /// The port that the server chose instead of the reserved one. A server that has the reserved one, or names it, may have
    /// further ports, for metrics or its operators: it is waited for.
    fn other_port(&self, reserved: u16, pid: u32) -> Option<u16> {
        let mut ports = port::listening(pid);
        ports.extend(self.state.log.tail(200).iter().filter_map(|line| port::in_line(line)));
        (!ports.contains(&reserved)).then(|| ports.first().copied())?
    }
}

/// True if another process listens on the port. Detected on Linux only.
fn is_another_process_on(port: u16, pid: u32) -> bool {
    cfg!(target_os = "linux") && {
        let ports = port::listening(pid);
        !ports.is_empty() && !ports.contains(&port)
    }
}

fn is_port_taken(line: &str) -> bool {
    let line = line.to_lowercase();
    ["eaddrinuse", "address already in use", "address in use"].iter().any(|text| line.contains(text))
}
