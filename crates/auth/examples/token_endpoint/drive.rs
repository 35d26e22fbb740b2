//! The client side: 16 connections, each with one exchange at a time.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{Outcome, VERIFIER};

const AT_ONCE: usize = 16;
/// Exchanges before the measurement, so that connections, scripts and memory are warm.
const WARM: usize = 2_000;

pub(crate) struct Measured {
    pub(crate) per_s: f64,
    /// Processor time of the server, user and system, for one exchange.
    pub(crate) cpu_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) resident_mb: f64,
}

pub(crate) async fn run(port: u16, codes: Vec<String>, process: u32) -> Outcome<Measured> {
    let (warm, codes) = codes.split_at(WARM);
    exchange_all(port, warm).await?;
    let (before, began) = (processor_time(process)?, Instant::now());
    let mut times = exchange_all(port, codes).await?;
    let all = began.elapsed();
    let used = processor_time(process)? - before;
    times.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    Ok(Measured {
        per_s: codes.len() as f64 / all.as_secs_f64(),
        cpu_us: micros(used) / codes.len() as f64,
        p50_us: micros(times[times.len() / 2]),
        p99_us: micros(times[times.len() * 99 / 100]),
        resident_mb: resident_mb(process)?,
    })
}

async fn exchange_all(port: u16, codes: &[String]) -> Outcome<Vec<Duration>> {
    let mut tasks = Vec::new();
    for part in codes.chunks(codes.len().div_ceil(AT_ONCE)) {
        let part = part.to_vec();
        tasks.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.set_nodelay(true)?;
            let (mut times, mut buffer) = (Vec::with_capacity(part.len()), vec![0; 16 * 1024]);
            for code in part {
                let body = format!(
                    "grant_type=authorization_code&client_id=app&code_verifier={VERIFIER}&code={code}"
                );
                let request = format!(
                    "POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                let began = Instant::now();
                stream.write_all(request.as_bytes()).await?;
                read_answer(&mut stream, &mut buffer).await?;
                times.push(began.elapsed());
            }
            Outcome::Ok(times)
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(times)
}

/// Reads one answer and checks that it holds a token.
async fn read_answer(stream: &mut TcpStream, buffer: &mut [u8]) -> Outcome<()> {
    let mut held = 0;
    loop {
        let read = stream.read(&mut buffer[held..]).await?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        held += read;
        let text = std::str::from_utf8(&buffer[..held])?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
        let length: usize = length.ok_or("no length")?.trim().parse()?;
        if body.len() < length {
            continue;
        }
        if !head.starts_with("http/1.1 200") || !body.contains("\"access_token\":") {
            return Err(format!("no token: {text}").into());
        }
        return Ok(());
    }
}

/// User and system time of a process, from `/proc/<id>/schedstat` of its threads (nanoseconds).
fn processor_time(process: u32) -> Outcome<Duration> {
    let mut nanos = 0;
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        nanos += text.split(' ').next().ok_or("no time")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanos))
}

fn resident_mb(process: u32) -> Outcome<f64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no memory")?;
    let kb: f64 = line.split_whitespace().next().ok_or("no memory")?.parse()?;
    Ok(kb / 1024.0)
}
