//! Runs that give their worker back while their calls take long.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use gatewright_agentscript::{
    Host, HostFuture, JournalEntry, Outcome, PoolConfig, Replay, RunError, RunRequest, ToolAnswer, ToolCall,
    ToolFailure, WorkerError, WorkerPool,
};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    journal::Kept,
    support::{config, raw, value},
};

/// Tools that count their calls: `ask` waits for somebody, `echo` answers at once, any other one when it is let go.
#[derive(Default)]
struct Slow {
    made: Mutex<Vec<String>>,
    doors: Mutex<HashMap<String, Arc<Semaphore>>>,
    dropped: Arc<Mutex<Vec<String>>>,
}

struct Dropped(String, Arc<Mutex<Vec<String>>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.1.lock().unwrap().push(self.0.clone());
    }
}

impl Slow {
    fn door(&self, name: &str) -> Arc<Semaphore> {
        let new = || Arc::new(Semaphore::new(0));
        self.doors.lock().unwrap().entry(name.to_owned()).or_insert_with(new).clone()
    }

    fn let_go(&self, name: &str) {
        self.door(name).add_permits(1);
    }

    fn made(&self) -> Vec<String> {
        self.made.lock().unwrap().clone()
    }

    async fn until_made(&self, count: usize) {
        while self.made().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

impl Host for Slow {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            assert!(call.resumed.is_none(), "no call is made again: {call:?}");
            self.made.lock().unwrap().push(call.name.clone());
            match call.name.as_str() {
                "ask" => Ok(ToolAnswer::Waits(raw(&json!({"asked": true})))),
                "echo" => Ok(call.input.into()),
                name => {
                    let open = Dropped(name.to_owned(), self.dropped.clone());
                    self.door(name).acquire().await.unwrap().forget();
                    std::mem::forget(open);
                    Ok(raw(&json!(name)).into())
                }
            }
        })
    }

    fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async move { Ok(raw(&json!({ "name": name }))) })
    }
}

/// One worker, and a run that gives it back at once.
struct Scene {
    pool: Arc<WorkerPool>,
    tools: Arc<Slow>,
    journal: Arc<Kept>,
    cancel: CancellationToken,
    request: RunRequest,
}

fn scene(script: &str) -> Scene {
    scene_on(script, config())
}

fn scene_on(script: &str, config: PoolConfig) -> Scene {
    let journal = Arc::new(Kept::readable());
    let mut request = RunRequest::new(script);
    request.seed = Some(7);
    request.started_at = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    request.limits.wait = Some(Duration::from_secs(600));
    request.journal = Some(journal.clone());
    request.park_after = Some(Duration::from_millis(10));
    request.patient = true;
    let pool = WorkerPool::new(config.workers(1)).unwrap();
    Scene { pool, tools: Arc::default(), journal, cancel: CancellationToken::new(), request }
}

impl Scene {
    fn start(&self) -> tokio::task::JoinHandle<Outcome> {
        let (pool, tools, cancel) = (self.pool.clone(), self.tools.clone(), self.cancel.clone());
        let request = self.request.clone();
        tokio::spawn(async move { pool.run(request, tools, cancel).await })
    }

    /// Waits until the only worker is there for others.
    async fn until_parked(&self) {
        while self.pool.stats().idle == 0 || self.pool.stats().running > 0 {
            tokio::task::yield_now().await;
        }
    }

    async fn until_answered(&self, count: usize) {
        while self.answers().len() < count {
            tokio::task::yield_now().await;
        }
    }

    /// The answers in the journal, in their order.
    fn answers(&self) -> Vec<Value> {
        let entries = self.journal.entries();
        let answer = |entry: &JournalEntry| match entry {
            JournalEntry::Answer { answer: Ok(answer), .. } => serde_json::from_str(answer.get()).ok(),
            _ => None,
        };
        entries.iter().filter_map(answer).collect()
    }

    /// The result of a run that goes through the whole journal again and makes no call.
    async fn replayed(&self) -> Value {
        let mut request = self.request.clone();
        let entries = self.journal.entries();
        request.replay = Some(Arc::new(Replay { entries, elapsed: Duration::from_secs(60) }));
        (request.journal, request.park_after) = (None, None);
        let none = Arc::new(Slow::default());
        let again = self.pool.run(request, none.clone(), CancellationToken::new()).await;
        assert_eq!(none.made(), Vec::<String>::new());
        value(&again)
    }
}

const TWO: &str = "
    const before = (await callTool('echo', {n: 1})).n, seen = [before, Math.random()];
    const took = (name) => callTool(name, {}).then((answer) => seen.push(answer, Date.now()));
    await Promise.all([took('first'), took('second')]);
    seen.push((await callTool('echo', {n: 2})).n);
    return seen;
";

fn names(result: &Value) -> Vec<&str> {
    result.as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn a_run_whose_calls_take_long_gives_its_worker_to_others_and_makes_no_call_twice() {
    let scene = scene(TWO);
    let run = scene.start();
    scene.tools.until_made(3).await;
    scene.until_parked().await;
    let other =
        scene.pool.run(RunRequest::new("return 1"), scene.tools.clone(), CancellationToken::new()).await;
    assert_eq!(value(&other), json!(1), "the only worker is free");
    // The answers come one by one, and the run waits for the second one without a worker, too.
    scene.tools.let_go("second");
    scene.until_answered(2).await;
    scene.until_parked().await;
    scene.tools.let_go("first");
    let outcome = run.await.unwrap();
    let result = value(&outcome);
    assert_eq!(names(&result), ["second", "first"], "{result}");
    assert_eq!(scene.tools.made(), ["echo", "first", "second", "echo"]);
    assert_eq!(outcome.calls.len(), 4);
    assert_eq!(scene.replayed().await, result);
    assert_eq!(scene.pool.stats().replaced, 0, "the worker serves the next run");
}

#[tokio::test]
async fn answers_that_come_while_no_worker_is_free_reach_the_script_in_their_order() {
    let scene = scene(TWO);
    let run = scene.start();
    scene.tools.until_made(3).await;
    scene.until_parked().await;
    let (pool, tools) = (scene.pool.clone(), scene.tools.clone());
    let other = RunRequest::new("return await callTool('other', {})");
    let other = tokio::spawn(async move { pool.run(other, tools, CancellationToken::new()).await });
    scene.tools.until_made(4).await;
    for (count, name) in [(2, "second"), (3, "first")] {
        scene.tools.let_go(name);
        scene.until_answered(count).await;
    }
    scene.tools.let_go("other");
    assert_eq!(value(&other.await.unwrap()), json!("other"));
    let result = value(&run.await.unwrap());
    assert_eq!(names(&result), ["second", "first"], "{result}");
    assert_eq!(scene.replayed().await, result);
}

#[tokio::test]
async fn cancelling_a_run_without_a_worker_drops_its_calls() {
    let scene = scene(TWO);
    let run = scene.start();
    scene.tools.until_made(3).await;
    scene.until_parked().await;
    assert!(scene.tools.dropped.lock().unwrap().is_empty());
    scene.cancel.cancel();
    assert_eq!(run.await.unwrap().result.unwrap_err(), RunError::Worker(WorkerError::Aborted));
    let mut dropped = scene.tools.dropped.lock().unwrap().clone();
    dropped.sort();
    assert_eq!(dropped, ["first", "second"]);
}

#[tokio::test]
async fn a_halt_keeps_the_answers_of_calls_under_way_without_a_worker() {
    let mut scene = scene(TWO);
    let run = scene.start();
    scene.tools.until_made(3).await;
    scene.until_parked().await;
    scene.request.halt.cancel();
    tokio::task::yield_now().await;
    scene.tools.let_go("first");
    scene.tools.let_go("second");
    assert_eq!(run.await.unwrap().result.unwrap_err(), RunError::Suspended);
    assert_eq!(scene.answers().len(), 3, "no outcome is unknown");
    // Somebody else goes on.
    let entries = scene.journal.entries();
    scene.request.replay = Some(Arc::new(Replay { entries, elapsed: Duration::from_secs(60) }));
    scene.request.halt = CancellationToken::new();
    let result = value(&scene.start().await.unwrap());
    assert_eq!(names(&result).len(), 2);
    assert_eq!(scene.tools.made(), ["echo", "first", "second", "echo"]);
}

#[tokio::test]
async fn what_waits_for_somebody_is_asked_once_and_suspends_the_run_when_the_slow_calls_are_done() {
    let scene = scene(
        "const asked = callTool('ask', {}); const slow = await callTool('slow', {});
         return [slow, await asked]",
    );
    let run = scene.start();
    scene.tools.until_made(2).await;
    scene.until_parked().await;
    scene.tools.let_go("slow");
    assert_eq!(run.await.unwrap().result.unwrap_err(), RunError::Suspended);
    assert_eq!(scene.tools.made(), ["ask", "slow"]);
    assert_eq!(scene.answers(), [json!("slow")]);
}

#[tokio::test]
async fn the_limit_of_waiting_ends_a_run_without_a_worker() {
    let mut scene = scene("await callTool('never', {})");
    scene.request.limits.wait = Some(Duration::from_millis(100));
    let ended = scene.start().await.unwrap();
    assert!(matches!(ended.result, Err(RunError::Timeout { .. })), "{:?}", ended.result);
    assert_eq!(scene.tools.made(), ["never"]);
}

#[tokio::test]
async fn a_run_keeps_its_worker_when_as_many_as_may_be_are_without_one() {
    let most = config().most_parked(1).queue_timeout(Duration::from_millis(300));
    let scene = scene_on("return await callTool('slow', {})", most);
    let first = scene.start();
    scene.tools.until_made(1).await;
    scene.until_parked().await;
    let second = scene.start();
    scene.tools.until_made(2).await;
    let third =
        scene.pool.run(RunRequest::new("return 1"), scene.tools.clone(), CancellationToken::new()).await;
    let refused = RunError::Worker(WorkerError::QueueTimeout(Duration::from_millis(300)));
    assert_eq!(third.result.unwrap_err(), refused);
    scene.tools.let_go("slow");
    scene.tools.let_go("slow");
    assert_eq!(value(&second.await.unwrap()), json!("slow"));
    assert_eq!(value(&first.await.unwrap()), json!("slow"));
}

#[tokio::test]
async fn runs_in_the_background_that_only_wait_leave_their_workers_to_those_of_others() {
    let scene = scene("return await callTool('first', {})");
    let of = |principal: &str| {
        let mut request = scene.request.clone();
        request.journal = Some(Arc::new(Kept::readable()));
        request.park_after = Some(Duration::from_secs(3_600));
        (request.background, request.parties) = (true, vec![(principal.to_owned(), 1)]);
        let (pool, tools) = (scene.pool.clone(), scene.tools.clone());
        tokio::spawn(async move { pool.run(request, tools, CancellationToken::new()).await })
    };
    // Together they have every worker that runs in the background may have.
    let waiting = [of("ada"), of("bob")];
    scene.tools.until_made(2).await;
    let other = of("eve");
    scene.tools.until_made(3).await;
    for _ in 0..3 {
        scene.tools.let_go("first");
    }
    for run in waiting.into_iter().chain([other]) {
        assert_eq!(value(&run.await.unwrap()), json!("first"));
    }
}
