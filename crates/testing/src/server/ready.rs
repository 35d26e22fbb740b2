//! From a started process to a server that answers.

use std::{net::Ipv4Addr, time::Duration};

use tokio::time::Instant;

use super::{Kind, Process, Server, ServerInfo, StartError, port};
use crate::wire::http::direct_client;

/// How long a server may take until it answers, when the test does not say.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Tries when the port turns out to be taken.
const MOST_TRIES: u32 = 3;

/// What to try with a server that ended. One over standard input and output does when its input is empty.
const ENDED: &str = "run the command by hand and look at its last lines above; when it talks over standard input and output, set `transport` to stdio";

impl Server {
    pub(super) async fn start(&self) -> Result<(), StartError> {
        let options = &self.shared.options;
        match &self.shared.kind {
            Kind::Memory(_) | Kind::Stdio => Ok(()),
            Kind::Elsewhere => {
                let base_url = options.base_url.clone().unwrap_or_default();
                let url = url::Url::parse(&base_url).ok();
                let port = url.and_then(|url| url.port_or_known_default()).unwrap_or_default();
                *crate::lock(&self.shared.info) = ServerInfo { base_url, port, pid: 0 };
                Ok(())
            }
            Kind::Child => {
                let mut tries = 0;
                loop {
                    tries += 1;
                    let error = match self.start_child().await {
                        Ok(()) => return Ok(()),
                        Err(error) => error,
                    };
                    let taken = error.log_tail.iter().any(|line| is_port_taken(line));
                    if !taken || options.port.is_some() || tries == MOST_TRIES {
                        return Err(error);
                    }
                    // Another port the next time.
                    crate::lock(&self.shared.info).port = 0;
                }
            }
        }
    }

    async fn start_child(&self) -> Result<(), StartError> {
        let (options, log) = (&self.shared.options, &self.shared.log);
        let before = crate::lock(&self.shared.info).port;
        let reserved = match (options.port, before) {
            (Some(port), _) => port,
            (None, 0) => {
                port::reserve().map_err(|error| options.failure(0, format!("no free port: {error}"), log))?
            }
            (None, before) => before,
        };
        let spawned =
            Process::spawn(options.command(reserved), false, log, options.stop_timeout, &self.shared.ended);
        let (mut process, _) = spawned.map_err(|error| StartError {
            advice: not_runnable(&error),
            ..options.failure(reserved, format!("it cannot be run: {error}"), log)
        })?;
        let patience = options.startup_timeout.unwrap_or(STARTUP_TIMEOUT);
        let deadline = Instant::now() + patience;
        let client =
            direct_client("http://").map_err(|error| options.failure(reserved, error.to_string(), log))?;
        let mut rounds = 0u32;
        let port = loop {
            if let Some(status) = process.exited() {
                // What it printed last may still be on its way.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let failure = options.failure(reserved, "it ended before it answered".into(), log);
                let taken = failure.log_tail.iter().any(|line| is_port_taken(line));
                let advice = match taken {
                    true => {
                        format!("port {reserved} is taken: leave `port` out, so that a free one is chosen")
                    }
                    false => ENDED.into(),
                };
                return Err(StartError { exit: Some(status.to_string()), advice, ..failure });
            }
            let up = self.answers(&client, reserved).await;
            if up && !is_another_process_on(reserved, process.pid()) {
                break reserved;
            }
            // It may have chosen a port itself. Looked for less often: it costs a walk over all processes.
            if rounds % 10 == 9
                && let Some(other) = self.other_port(reserved, process.pid())
                && self.answers(&client, other).await
            {
                log.push(format!("[gatewright-testing] it listens on port {other}, not on PORT={reserved}"));
                break other;
            }
            if Instant::now() >= deadline {
                let problem = format!("it did not answer on port {reserved} within {patience:?}");
                let listens = port::listening(process.pid());
                let failure = options.failure(reserved, problem, log);
                process.stop().await;
                let advice = match listens.as_slice() {
                    [] => "let it listen on the port in the environment variable PORT (or `{port}` in `args`), or raise `startup_timeout`; a server over standard input and output needs `transport` stdio".into(),
                    ports => format!("it listens on {ports:?} but gives no HTTP answer to GET {}", options.ready_path),
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
        *crate::lock(&self.shared.info) = ServerInfo { base_url, port, pid: process.pid() };
        *self.shared.running.lock().await = Some(process);
        Ok(())
    }

    async fn answers(&self, client: &reqwest::Client, port: u16) -> bool {
        let url = format!("http://{}:{port}{}", Ipv4Addr::LOCALHOST, self.shared.options.ready_path);
        let answer = client.get(url).timeout(Duration::from_secs(2)).send().await;
        answer.is_ok_and(|answer| answer.status() != reqwest::StatusCode::SERVICE_UNAVAILABLE)
    }

    fn other_port(&self, reserved: u16, pid: u32) -> Option<u16> {
        let listens = port::listening(pid).into_iter();
        let named = self.shared.log.tail(200).into_iter().filter_map(|line| port::in_line(&line));
        listens.chain(named).find(|port| *port != reserved)
    }
}

/// Whether somebody else answers on the port. Known on Linux only.
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

pub(super) fn not_runnable(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "give a path to an executable, the name of a binary cargo built \
            (`cargo build --bins`), a .js, .mjs, .ts or .py file, or a command on PATH"
            .into(),
        std::io::ErrorKind::PermissionDenied => "make the file executable (`chmod +x`)".into(),
        _ => "run the command by hand".into(),
    }
}
