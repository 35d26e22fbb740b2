//! Journals: what a run writes, and runs that go through one again and on from its end.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use gatewright_agentscript::{
    CallStatus, Host, HostFuture, Journal, JournalEntry, JournalError, Outcome, Replay, Resumed, RunError,
    RunRequest, ToolAnswer, ToolCall, ToolFailure, WorkerPool,
};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::support::{config, failure, pool, raw, value};

/// A journal in memory; refuses everything once it has `most` entries.
#[derive(Debug)]
pub(crate) struct Kept {
    entries: Mutex<Vec<JournalEntry>>,
    most: usize,
    is_readable: bool,
}

impl Default for Kept {
    fn default() -> Self {
        Self { entries: Mutex::default(), most: usize::MAX, is_readable: false }
    }
}

impl Kept {
    /// One that a run may go through again itself.
    pub(crate) fn readable() -> Self {
        Self { is_readable: true, ..Self::default() }
    }

    pub(crate) fn entries(&self) -> Vec<JournalEntry> {
        self.entries.lock().expect("no panic holds it").clone()
    }
}

impl Journal for Kept {
    fn write(&self, entries: Vec<JournalEntry>) -> HostFuture<'_, Result<(), JournalError>> {
        let mut kept = self.entries.lock().expect("no panic holds it");
        kept.extend(entries);
        let full = kept.len() > self.most;
        Box::pin(async move {
            match full {
                true => Err(JournalError { code: "FULL".to_owned(), message: "no room".to_owned() }),
                false => Ok(()),
            }
        })
    }

    fn can_be_read(&self) -> bool {
        self.is_readable
    }

    fn read(&self) -> HostFuture<'_, Result<Vec<JournalEntry>, JournalError>> {
        let entries = self.entries();
        Box::pin(async move { Ok(entries) })
    }
}

/// Tools of these tests: `echo` gives its input, `fail` fails, `later` answers after those that came behind it, `ask` waits until `answers` has
/// its name, anything else counts as an effect.
#[derive(Debug)]
struct Tools {
    effects: Mutex<Vec<String>>,
    interrupted: Mutex<Vec<String>>,
    answers: HashSet<String>,
    turn: Semaphore,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            effects: Mutex::default(),
            interrupted: Mutex::default(),
            answers: HashSet::new(),
            turn: Semaphore::new(0),
        }
    }
}

impl Tools {
    fn answering(names: &[&str]) -> Self {
        Self { answers: names.iter().map(|&name| name.to_owned()).collect(), ..Self::default() }
    }

    fn effects(&self) -> Vec<String> {
        self.effects.lock().expect("no panic holds it").clone()
    }
}

impl Host for Tools {
    fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
        Box::pin(async move {
            let input: Value = serde_json::from_str(call.input.get()).expect("the pool passes JSON only");
            if matches!(call.resumed, Some(Resumed::Interrupted)) {
                self.interrupted.lock().expect("no panic holds it").push(call.name.clone());
            }
            match call.name.as_str() {
                "echo" => {
                    self.turn.add_permits(1);
                    Ok(call.input.into())
                }
                "later" => {
                    self.turn.acquire().await.expect("it is never closed").forget();
                    Ok(call.input.into())
                }
                "fail" => Err(failure("NOT_FOUND", "no such user")),
                "never" => std::future::pending().await,
                "ask" => {
                    let name = input["name"].as_str().unwrap_or_default();
                    if !self.answers.contains(name) {
                        return Ok(ToolAnswer::Waits(raw(&json!({"asked": name}))));
                    }
                    let Some(Resumed::Waited(state)) = call.resumed else {
                        return Err(failure("NOT_ASKED", "nobody was asked"));
                    };
                    Ok(state.into())
                }
                name => {
                    self.effects.lock().expect("no panic holds it").push(name.to_owned());
                    Ok(raw(&json!({"done": name})).into())
                }
            }
        })
    }

    fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
        Box::pin(async move {
            self.effects.lock().expect("no panic holds it").push(format!("get {name}"));
            Ok(raw(&json!({"name": name})))
        })
    }
}

struct Ran {
    outcome: Outcome,
    journal: Vec<JournalEntry>,
    tools: Arc<Tools>,
}

impl Ran {
    fn error(&self) -> &RunError {
        self.outcome.result.as_ref().expect_err("no value")
    }
}

async fn on(pool: &WorkerPool, source: &str, entries: &[JournalEntry], tools: Tools) -> Ran {
    let (kept, tools) = (Arc::new(Kept::default()), Arc::new(tools));
    let mut request = RunRequest::new(source);
    request.seed = Some(7);
    request.started_at = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    request.journal = Some(kept.clone());
    if !entries.is_empty() {
        // A journal that is written and read is the same.
        let text = serde_json::to_string(entries).expect("JSON");
        let entries = serde_json::from_str(&text).expect("what was written can be read");
        request.replay = Some(Arc::new(Replay { entries, elapsed: Duration::from_secs(60) }));
    }
    let outcome = pool.run(request, tools.clone(), CancellationToken::new()).await;
    Ran { outcome, journal: kept.entries(), tools }
}

async fn ran(source: &str, entries: &[JournalEntry], tools: Tools) -> Ran {
    on(&pool(), source, entries, tools).await
}

const BUSY: &str = "
    const seen = [Math.random(), Date.now()];
    const slow = callTool('later', {n: 1});
    const tool = getTool('crm:get').name;
    const quick = await callTool('echo', {n: 2});
    seen.push(Date.now() >= seen[1], tool, quick.n, (await slow).n);
    for (let i = 0; i < 4; i++) seen.push((await callTool('step' + i, {i, r: Math.random()})).done);
    const all = await __safe_parallel([() => callTool('a', {}), () => callTool('fail', {}), () => callTool('b', {})], {settle: true});
    seen.push(all.map(it => it.success));
    try { await callTool('fail', {}) } catch (error) { seen.push(error.code) }
    console.log('at', seen.length);
    return seen;
";

#[tokio::test]
async fn a_run_that_is_halted_makes_no_more_calls_and_keeps_the_answers_of_those_under_way() {
    let script = "
        const slow = callTool('later', {n: 1}), other = callTool('before', {});
        const then = other.then(() => callTool('echo', {n: 2}));
        return [(await slow).n, (await callTool('after', {})).done, (await then).n];
    ";
    let (kept, tools, own) = (Arc::new(Kept::default()), Arc::new(Tools::default()), pool());
    let mut request = RunRequest::new(script);
    request.seed = Some(7);
    request.journal = Some(kept.clone());
    let halt = request.halt.clone();
    let run = own.run(request, tools.clone(), CancellationToken::new());
    let stopping = async {
        while tools.effects() != ["before"] {
            tokio::task::yield_now().await;
        }
        halt.cancel();
        tokio::task::yield_now().await;
        tools.turn.add_permits(1);
    };
    let (outcome, ()) = tokio::join!(run, stopping);
    assert_eq!(outcome.result.unwrap_err(), RunError::Suspended);
    assert_eq!(tools.effects(), ["before"], "nothing new is done");
    let journal = kept.entries();
    let answers = journal.iter().filter(|entry| matches!(entry, JournalEntry::Answer { .. })).count();
    let calls = journal.iter().filter(|entry| matches!(entry, JournalEntry::Call { .. })).count();
    assert_eq!(answers, calls, "no outcome is unknown: {journal:?}");
    let again = ran(script, &journal, Tools::default()).await;
    assert_eq!(value(&again.outcome), json!([1, "after", 2]));
    assert_eq!(again.tools.effects(), ["after"]);

    // One that waits for a worker ends at once, too.
    let mut request = RunRequest::new(script);
    request.halt = halt;
    let outcome = own.run(request, tools, CancellationToken::new()).await;
    assert_eq!(outcome.result.unwrap_err(), RunError::Suspended);
}

#[tokio::test]
async fn a_whole_journal_gives_the_same_result_and_makes_no_call() {
    let first = ran(BUSY, &[], Tools::default()).await;
    let again = ran(BUSY, &first.journal, Tools::default()).await;
    assert_eq!(value(&again.outcome), value(&first.outcome));
    assert_eq!(again.outcome.logs, first.outcome.logs);
    assert_eq!(again.tools.effects(), Vec::<String>::new());
    assert!(again.journal.is_empty(), "{:?}", again.journal);
    let names = |outcome: &Outcome| {
        outcome.calls.iter().map(|call| (call.name.clone(), call.status)).collect::<Vec<_>>()
    };
    assert_eq!(names(&again.outcome), names(&first.outcome));
}

#[tokio::test]
async fn a_run_goes_on_from_every_place_of_its_journal_and_repeats_no_call_that_was_answered() {
    let first = ran(BUSY, &[], Tools::default()).await;
    for end in 1..first.journal.len() {
        let journal = &first.journal[..end];
        let answered: HashSet<u32> = journal
            .iter()
            .filter_map(|entry| match entry {
                JournalEntry::Answer { id, .. } => Some(*id),
                _ => None,
            })
            .collect();
        let done: HashSet<String> = journal
            .iter()
            .filter_map(|entry| match entry {
                JournalEntry::Call { id, name, .. } if answered.contains(id) => Some(name.clone()),
                _ => None,
            })
            .collect();
        let tools = Tools::default();
        // What `later` waits for may have happened before.
        tools.turn.add_permits(1);
        let again = ran(BUSY, journal, tools).await;
        assert_eq!(value(&again.outcome), value(&first.outcome), "from {end}");
        let repeated: Vec<String> =
            again.tools.effects().into_iter().filter(|name| done.contains(name)).collect();
        assert!(repeated.is_empty(), "from {end}: {repeated:?}");
        let whole: Vec<JournalEntry> = journal.iter().cloned().chain(again.journal).collect();
        let third = ran(BUSY, &whole, Tools::default()).await;
        assert_eq!(value(&third.outcome), value(&first.outcome), "from {end}, twice");
        assert_eq!(third.tools.effects(), Vec::<String>::new(), "from {end}, twice");
    }
}

#[tokio::test]
async fn a_call_that_was_under_way_is_said_to_be_so_when_it_is_made_again() {
    let script = "return [await callTool('one', {}), await callTool('two', {})]";
    let first = ran(script, &[], Tools::default()).await;
    // The second call was sent, and its answer is lost.
    let cut = &first.journal[..first.journal.len() - 1];
    let again = ran(script, cut, Tools::default()).await;
    assert_eq!(again.tools.interrupted.lock().unwrap().as_slice(), ["two"]);
    assert!(matches!(again.journal[0], JournalEntry::Retried { id: 1 }), "{:?}", again.journal);
    // Of a call that was asked again, too, it is not known whether it happened.
    let whole: Vec<_> = cut.iter().cloned().chain(again.journal[..1].to_vec()).collect();
    let third = ran(script, &whole, Tools::default()).await;
    assert_eq!(third.tools.interrupted.lock().unwrap().as_slice(), ["two"]);
}

#[tokio::test]
async fn a_run_that_only_waits_is_suspended_gives_its_worker_back_and_goes_on_with_the_answers() {
    let script = "
        const [a, b, c] = await Promise.all([callTool('ask', {name: 'a'}), callTool('before', {}), callTool('ask', {name: 'b'})]);
        const tool = getTool('x').name;
        return [a.asked, b.done, c.asked, tool, (await callTool('ask', {name: 'c'})).asked];
    ";
    let own = WorkerPool::new(config().workers(1)).unwrap();
    let first = on(&own, script, &[], Tools::default()).await;
    assert_eq!(first.error(), &RunError::Suspended);
    assert_eq!(first.tools.effects(), ["before"]);
    let open = first.outcome.calls.iter().filter(|call| call.status == CallStatus::Open);
    assert_eq!(open.count(), 2);

    // One of two answers: the other question stays.
    let second = on(&own, script, &first.journal, Tools::answering(&["a"])).await;
    assert_eq!(second.error(), &RunError::Suspended);
    assert_eq!(second.tools.effects(), Vec::<String>::new());
    let whole: Vec<_> = first.journal.into_iter().chain(second.journal).collect();
    let third = on(&own, script, &whole, Tools::answering(&["b"])).await;
    assert_eq!(third.error(), &RunError::Suspended);
    assert_eq!(third.tools.effects(), ["get x"]);
    let whole: Vec<_> = whole.into_iter().chain(third.journal).collect();
    let last = on(&own, script, &whole, Tools::answering(&["c"])).await;
    assert_eq!(value(&last.outcome), json!(["a", "before", "b", "x", "c"]));
    assert_eq!(last.tools.effects(), Vec::<String>::new());
    assert_eq!(own.stats().replaced, 0, "the worker serves the next run");
}

#[tokio::test]
async fn a_script_that_can_go_on_is_not_suspended() {
    let raced = ran(
        "return await Promise.race([callTool('ask', {name: 'a'}), callTool('echo', {n: 1})])",
        &[],
        Tools::default(),
    )
    .await;
    assert_eq!(value(&raced.outcome), json!({"n": 1}));
    let busy = ran(
        "const asked = callTool('ask', {name: 'a'}); let n = 0; for (let i = 0; i < 50000; i++) n += i; const last = await callTool('echo', {n}); return last.n",
        &[],
        Tools::default(),
    )
    .await;
    assert_eq!(value(&busy.outcome), json!(1_249_975_000));
}

#[tokio::test]
async fn a_journal_of_another_script_ends_the_run_before_any_new_call() {
    let script =
        "const a = await callTool('one', {id: 1}); const b = await callTool('two', {}); return [a, b]";
    let first = ran(script, &[], Tools::default()).await;
    for other in [
        "const a = await callTool('another', {id: 1}); return await callTool('new', {})",
        "const a = await callTool('one', {id: 2}); return await callTool('new', {})",
        "const a = await readResource('one'); return await callTool('new', {})",
        "const a = await callTool('one', {id: 1}); return a",
        "return 1",
        "throw new Error('other')",
        "const b = await __safe_parallel([() => callTool('one', {id: 1}), () => callTool('new', {})]); return b",
    ] {
        let again = ran(other, &first.journal, Tools::default()).await;
        assert!(
            matches!(again.error(), RunError::ReplayDiverged { .. }),
            "{other}: {:?}",
            again.outcome.result
        );
        assert_eq!(again.tools.effects(), Vec::<String>::new(), "{other}");
    }
}

#[tokio::test]
async fn a_call_that_cannot_be_written_down_is_not_made() {
    let tools = Arc::new(Tools::default());
    let kept = Arc::new(Kept { most: 2, ..Kept::default() });
    let mut request =
        RunRequest::new("await callTool('one', {}); await callTool('two', {}); return 'not reached'");
    request.journal = Some(kept.clone());
    let outcome = pool().run(request, tools.clone(), CancellationToken::new()).await;
    let Err(RunError::Journal { code, .. }) = outcome.result else { panic!("{:?}", outcome.result) };
    assert_eq!((code.as_str(), tools.effects()), ("FULL", vec!["one".to_owned()]));
    assert_eq!(kept.entries().len(), 3);
}

#[tokio::test]
async fn with_a_limit_of_waiting_only_the_scripts_own_time_counts_for_the_time_limit() {
    let limited = |source: &str, wait: u64| {
        let mut request = RunRequest::new(source);
        request.limits.timeout = Duration::from_millis(200);
        request.limits.wait = Some(Duration::from_millis(wait));
        request.limits.max_iterations = 50_000_000;
        request
    };
    struct Slow;
    impl Host for Slow {
        fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
            Box::pin(async move {
                match call.name.as_str() {
                    "slow" => tokio::time::sleep(Duration::from_millis(600)).await,
                    _ => std::future::pending().await,
                }
                Ok(call.input.into())
            })
        }

        fn get_tool(&self, name: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
            Box::pin(async move {
                if name == "slow" {
                    tokio::time::sleep(Duration::from_millis(600)).await;
                }
                Ok(RawValue::from_string("{}".to_owned()).unwrap())
            })
        }
    }
    let run = async |request| pool().run(request, Arc::new(Slow), CancellationToken::new()).await;
    let waited = run(limited("return await callTool('slow', {n: 1})", 60_000)).await;
    assert_eq!(value(&waited), json!({"n": 1}));
    let asked = run(limited("return getTool('slow')", 60_000)).await;
    assert_eq!(value(&asked), json!({}));
    for (source, wait) in [
        ("while (true) {}", 60_000),
        ("await callTool('slow', {}); while (true) {}", 60_000),
        ("while (true) { getTool('ready'); for (let i = 0; i < 20000; i++) {} }", 60_000),
        // Asked meanwhile whether it needs its worker.
        (
            "callTool('never', {}); while (true) { getTool('ready'); for (let i = 0; i < 20000; i++) {} }",
            60_000,
        ),
        ("await callTool('never', {})", 300),
    ] {
        let mut request = limited(source, wait);
        request.journal = Some(Arc::new(Kept { is_readable: true, ..Kept::default() }));
        request.park_after = Some(Duration::from_millis(20));
        let ended = run(request).await;
        assert!(matches!(ended.result, Err(RunError::Timeout { .. })), "{source}: {:?}", ended.result);
    }
}

#[tokio::test]
async fn with_a_limit_of_waiting_the_time_limit_begins_anew_after_each_wait() {
    const LIMIT: Duration = Duration::from_secs(2);
    struct Ready;
    impl Host for Ready {
        fn call_tool(&self, call: ToolCall) -> HostFuture<'_, Result<ToolAnswer, ToolFailure>> {
            Box::pin(async move { Ok(call.input.into()) })
        }

        fn get_tool(&self, _: String) -> HostFuture<'_, Result<Box<RawValue>, ToolFailure>> {
            Box::pin(std::future::pending())
        }
    }
    let pool = pool();
    let run = async |parts: u32, turns: u64| {
        let work = format!("await callTool('ready', {{}}); for (let i = 0; i < {turns}; i++) {{}}");
        let mut request =
            RunRequest::new(format!("for (let part = 0; part < {parts}; part++) {{ {work} }} return 1"));
        (request.limits.timeout, request.limits.wait) = (LIMIT, Some(Duration::from_secs(600)));
        request.limits.max_iterations = u64::MAX;
        let began = Instant::now();
        let outcome = pool.run(request, Arc::new(Ready), CancellationToken::new()).await;
        assert_eq!(value(&outcome), json!(1), "{parts} parts of {turns} turns");
        began.elapsed()
    };
    run(1, 1).await;
    let measured = run(1, 200_000).await;
    // Each part takes a twentieth of the limit, and all together twice as much.
    let turns = 200_000.0 * (LIMIT / 20).as_secs_f64() / measured.as_secs_f64();
    run(40, turns as u64).await;
}
