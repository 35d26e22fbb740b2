//! Memory of the real binary after requests that took much of it.

#[cfg(target_os = "linux")]
use crate::admin::start;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn memory_of_large_requests_goes_back_to_the_system_when_they_are_over() {
    let admin = start("apps:\n  crm: { builtin: crm }\nadmin: { port: 0, console: false }\n");
    // Without pages of the program, which the kernel takes back.
    let resident = async || {
        admin.get("/metrics").await;
        let status = format!("/proc/{}/status", admin.server.child.id());
        let text = std::fs::read_to_string(status).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux has it");
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() >> 10
    };
    let url = format!("http://{}/mcp", admin.server.address);
    let client = reqwest::Client::new();
    let body = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}", "x".repeat(3 << 20));
    let before = resident().await;
    for _ in 0..3 {
        let sent = (0..24).map(|_| {
            let body = body.clone();
            client.post(&url).header("content-type", "application/json").body(body).send()
        });
        for answer in futures::future::join_all(sent).await {
            answer.unwrap().bytes().await.unwrap();
        }
    }
    // Whoever was answered last may be about to free its request.
    let mut after = resident().await;
    for _ in 0..200 {
        if after < before + 20 {
            return;
        }
        after = resident().await;
    }
    panic!("{before} MiB became {after}");
}
