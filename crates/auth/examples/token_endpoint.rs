//! Measures the authorization codes that the token endpoint exchanges per second, beside a floor: plain axum, one round trip to Redis that takes the
//! code and keeps a refresh token, one signature, the same answer.
//!
//! `cargo run --release -p gatewright-auth --example token_endpoint [rounds]`. Starts `redis-server` and each server as a process of its
//! own on free ports, drives them in turn over 16 kept-alive connections, and prints exchanges a second, processor time of the
//! server per exchange, latencies and resident memory, each the median of the rounds.

#[path = "token_endpoint/drive.rs"]
mod drive;
#[path = "token_endpoint/floor.rs"]
mod floor;
#[path = "token_endpoint/ours.rs"]
mod ours;

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
};

pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CODES: usize = 12_000;
const RSA: &str = include_str!("../tests/it/support/rsa-2048.jwk.json");

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The signing key: `ES256` or `RS256`.
pub(crate) fn signing_key(algorithm: &str) -> Outcome<gatewright_auth::keys::Jwk> {
    Ok(match algorithm {
        "RS256" => serde_json::from_str(RSA)?,
        _ => gatewright_auth::keys::Jwk::generate(gatewright_auth::keys::Algorithm::ES256)?,
    })
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn redis() -> Outcome<(Ended, u16)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut child = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let ready = lines.map_while(Result::ok).any(|line| line.contains("Ready to accept connections"));
    if ready { Ok((Ended(child), port)) } else { Err("redis-server did not start".into()) }
}

/// One server in one round.
fn round(subject: &str, algorithm: &str, redis: u16) -> Outcome<drive::Measured> {
    let mut child = Ended(
        Command::new(std::env::current_exe()?)
            .args([subject, algorithm, &redis.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut lines = BufReader::new(child.0.stdout.take().ok_or("no output")?).lines();
    let port: u16 = lines.next().ok_or("the server ended")??.parse()?;
    let codes = lines.by_ref().take(CODES).collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(drive::run(port, codes, child.0.id()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(rounds: usize) -> Outcome<()> {
    let (_redis, port) = redis()?;
    println!(
        "| key | server | exchanges/s | processor us/exchange | per core-second | p50 us | p99 us | resident MB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for algorithm in ["ES256", "RS256"] {
        let mut all: Vec<(&str, Vec<drive::Measured>)> = vec![("floor", Vec::new()), ("ours", Vec::new())];
        for _ in 0..rounds {
            for (subject, measured) in &mut all {
                measured.push(round(subject, algorithm, port)?);
            }
        }
        for (subject, measured) in &all {
            let of = |field: fn(&drive::Measured) -> f64| median(measured.iter().map(field).collect());
            let cpu = of(|m| m.cpu_us);
            println!(
                "| {algorithm} | {subject} | {:.0} | {cpu:.1} | {:.0} | {:.0} | {:.0} | {:.1} |",
                of(|m| m.per_s),
                1e6 / cpu,
                of(|m| m.p50_us),
                of(|m| m.p99_us),
                of(|m| m.resident_mb),
            );
        }
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["floor", algorithm, port] => runtime()?.block_on(floor::serve(algorithm, port.parse()?)),
        ["ours", algorithm, port] => runtime()?.block_on(ours::serve(algorithm, port.parse()?)),
        ["check", algorithm, port] => runtime()?.block_on(ours::check(algorithm, port.parse()?)),
        [rounds] => compare(rounds.parse()?),
        _ => compare(5),
    }
}
