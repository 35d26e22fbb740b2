//! The page where users answer questions of plans.

use std::sync::{Arc, Mutex};

use gatewright_auth::QuestionPages;
use gatewright_core::{
    AppFuture, CannotAnswer, PlanQuestion, PlanQuestions, WaitingPlan, rmcp::model::InputResponses,
};
use http::{StatusCode, header};
use serde_json::{Value, json};

use crate::support::site::{Answer, Browser, ISSUER, PASSWORD, Site, post};

const PATH: &str = "/oauth/account/questions";
const HOSTILE: &str = "\"><script>alert(1)</script>\u{202e}";
const PLAN: &str = "exe_1";

/// Plans that wait: of alice unless the id says bob. Each has one question, which is answered once.
#[derive(Default)]
struct Plans {
    waiting: Mutex<Vec<(String, PlanQuestion)>>,
    answers: Mutex<Vec<Value>>,
    /// Error of the store.
    broken: Mutex<Option<CannotAnswer>>,
}

fn owner(plan: &str) -> &str {
    if plan.starts_with("bob") { "user:bob" } else { "user:alice" }
}

fn waiting_plan(id: &str) -> WaitingPlan {
    WaitingPlan {
        id: id.to_owned(),
        title: Some(format!("return 1 {HOSTILE}")),
        client: Some(HOSTILE.to_owned()),
        expires_ms: u64::MAX,
        detached: false,
        asks: vec![format!("{HOSTILE}{}", "a".repeat(5_000))],
    }
}

impl PlanQuestions for Plans {
    fn waiting<'a>(&'a self, subject: &'a str) -> AppFuture<'a, Result<Vec<WaitingPlan>, CannotAnswer>> {
        let waiting = self.waiting.lock().unwrap();
        let own = waiting.iter().filter(|(plan, _)| owner(plan) == subject);
        let own = own.map(|(plan, _)| waiting_plan(plan)).collect();
        let broken = *self.broken.lock().unwrap();
        Box::pin(async move { broken.map_or(Ok(own), Err) })
    }

    fn questions<'a>(
        &'a self,
        subject: &'a str,
        id: &'a str,
    ) -> AppFuture<'a, Result<(WaitingPlan, Vec<PlanQuestion>), CannotAnswer>> {
        let waiting = self.waiting.lock().unwrap();
        let own = waiting.iter().filter(|(plan, _)| plan == id && owner(plan) == subject);
        let own: Vec<_> = own.map(|(_, question)| question.clone()).collect();
        Box::pin(async move {
            if own.is_empty() { Err(CannotAnswer::NotOpen) } else { Ok((waiting_plan(id), own)) }
        })
    }

    fn answer<'a>(
        &'a self,
        subject: &'a str,
        id: &'a str,
        question: &'a str,
        responses: InputResponses,
    ) -> AppFuture<'a, Result<(), CannotAnswer>> {
        let mut waiting = self.waiting.lock().unwrap();
        let before = waiting.len();
        waiting.retain(|(plan, one)| !(plan == id && owner(plan) == subject && one.id == question));
        let taken = before > waiting.len();
        if taken {
            self.answers.lock().unwrap().push(json!(responses));
        }
        Box::pin(async move { if taken { Ok(()) } else { Err(CannotAnswer::NotOpen) } })
    }
}

fn form(message: &str, schema: Value) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn question(id: &str, requests: Value) -> PlanQuestion {
    PlanQuestion {
        id: id.to_owned(),
        name: "shop:refund".to_owned(),
        requests: serde_json::from_value(requests).unwrap(),
    }
}

fn amount() -> Value {
    form(
        "How much?",
        json!({"type": "object", "required": ["amount"], "properties": {
            "amount": {"type": "integer", "minimum": 1, "maximum": 50, "title": "Amount", "default": 7},
            "note": {"type": "string", "maxLength": 20},
        }}),
    )
}

async fn site(waiting: impl IntoIterator<Item = (&str, PlanQuestion)>) -> (Site, Arc<Plans>) {
    let mut site = Site::new().await;
    let plans = Arc::new(Plans::default());
    plans.waiting.lock().unwrap().extend(waiting.into_iter().map(|(plan, one)| (plan.to_owned(), one)));
    let pages = QuestionPages::new(&site.server, plans.clone()).unwrap();
    assert_eq!(pages.address(), format!("{ISSUER}{PATH}"));
    site.router = site.router.clone().merge(pages.router());
    (site, plans)
}

/// Opens `path` as `user`, who signs in first and is led back to it.
async fn open(browser: &Browser<'_>, user: &str, path: &str) -> Answer {
    let login = browser.get(path).await;
    assert!(login.text.contains("password") && !login.text.contains("How much"), "{}", login.text);
    let mut next = browser.log_in(&login, user, PASSWORD).await;
    while next.header("location") != format!("{ISSUER}{path}") {
        next = browser.follow(&next).await;
    }
    browser.follow(&next).await
}

async fn send(browser: &Browser<'_>, csrf: &str, fields: &[(&str, &str)]) -> Answer {
    let mut request = post(PATH, &[&[("csrf", csrf)], fields].concat());
    request.headers_mut().insert(header::ORIGIN, ISSUER.parse().unwrap());
    browser.send(request).await
}

fn of_plan() -> String {
    format!("{PATH}?plan={PLAN}")
}

#[tokio::test]
async fn where_nobody_stays_signed_in_there_is_no_page() {
    let site = Site::with(json!({"sessionMode": "stateless"})).await;
    assert!(QuestionPages::new(&site.server, Arc::<Plans>::default()).is_none());
}

#[tokio::test]
async fn a_user_answers_a_form_once_and_sees_the_errors_of_its_fields() {
    let (site, plans) = site([(PLAN, question("q", json!({"how": amount()})))]).await;
    let browser = site.browser();
    let page = open(&browser, "alice", &of_plan()).await;
    assert_eq!(page.status, StatusCode::OK);
    for part in
        ["How much?", "shop:refund", ">Amount<", "value=\"7\"", "max=\"50\"", "note<span", "(optional)"]
    {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    let csrf = page.field("csrf");
    let answer = |fields: &[(&'static str, &'static str)]| {
        [&[("plan", PLAN), ("question", "q"), ("action", "accept")], fields].concat()
    };
    let wrong = send(&browser, &csrf, &answer(&[("q0.f0", "51"), ("q0.f1", "<b>kept")])).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    for part in
        ["This must be at most 50.", "value=\"51\"", "aria-invalid=\"true\"", "value=\"&lt;b&gt;kept\""]
    {
        assert!(wrong.text.contains(part), "{part}: {}", wrong.text);
    }
    let missing = send(&browser, &csrf, &answer(&[])).await;
    assert!(missing.text.contains("This is needed."), "{}", missing.text);
    assert!(plans.answers.lock().unwrap().is_empty());

    let right = answer(&[("q0.f0", "50"), ("q0.f1", "thanks")]);
    let taken = send(&browser, &csrf, &right).await;
    assert_eq!(taken.status, StatusCode::SEE_OTHER, "{}", taken.text);
    let after = browser.follow(&taken).await;
    assert_eq!(after.status, StatusCode::OK);
    assert!(after.text.contains("Nothing of that plan waits for your answer now."), "{}", after.text);
    let again = send(&browser, &csrf, &right).await;
    assert_eq!(again.status, StatusCode::BAD_REQUEST);
    assert!(again.text.contains("it was answered already"), "{}", again.text);
    assert_eq!(
        *plans.answers.lock().unwrap(),
        [json!({"how": {"action": "accept", "content": {"amount": 50, "note": "thanks"}}})]
    );
}

#[tokio::test]
async fn a_user_declines_or_cancels_whatever_the_fields_have() {
    let waiting = ["decline", "cancel"].map(|id| (PLAN, question(id, json!({"how": amount()}))));
    let (site, plans) = site(waiting).await;
    let browser = site.browser();
    let csrf = open(&browser, "alice", &of_plan()).await.field("csrf");
    for action in ["decline", "cancel"] {
        let fields = [("plan", PLAN), ("question", action), ("action", action), ("q0.f0", "9999")];
        assert_eq!(send(&browser, &csrf, &fields).await.status, StatusCode::SEE_OTHER);
        let last = plans.answers.lock().unwrap().pop().unwrap();
        assert_eq!(last, json!({"how": {"action": action}}), "no content goes with it");
    }
}

#[tokio::test]
async fn another_user_sees_and_answers_nothing_and_unknown_plans_look_the_same() {
    let (alices, bobs) = (question("q", json!({"how": amount()})), question("b", json!({"how": amount()})));
    let (site, plans) = site([(PLAN, alices), ("bobs", bobs)]).await;
    let browser = site.browser();
    let list = open(&browser, "alice", PATH).await;
    assert!(list.text.contains(PLAN) && !list.text.contains("bobs"), "{}", list.text);
    let (others, unknown) =
        (browser.get(&format!("{PATH}?plan=bobs")).await, browser.get(&format!("{PATH}?plan=none")).await);
    assert_eq!((others.status, &others.text), (StatusCode::BAD_REQUEST, &unknown.text));
    assert!(!others.text.contains("How much"), "{}", others.text);

    let csrf = browser.get(&of_plan()).await.field("csrf");
    let fields = |plan, question| [("plan", plan), ("question", question), ("action", "decline")];
    // Of another user, under an own plan, forged, none at all.
    for (plan, question) in [("bobs", "b"), (PLAN, "b"), (PLAN, "0000"), ("", ""), ("../x?y", "q")] {
        let refused = send(&browser, &csrf, &fields(plan, question)).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{plan} {question}");
        assert!(refused.text.contains("does not wait for you any more"), "{}", refused.text);
    }
    assert!(plans.answers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_form_of_another_site_or_without_its_token_or_a_session_answers_nothing() {
    let (site, plans) = site([(PLAN, question("q", json!({"how": amount()})))]).await;
    let (browser, other) = (site.browser(), site.browser());
    let csrf = open(&browser, "alice", &of_plan()).await.field("csrf");
    open(&other, "bob", PATH).await;
    let fields = [("plan", PLAN), ("question", "q"), ("action", "decline")];
    let mut foreign = post(PATH, &[&[("csrf", &*csrf)], &fields[..]].concat());
    foreign.headers_mut().insert(header::ORIGIN, "https://evil.example".parse().unwrap());
    assert!(browser.send(foreign).await.status.is_client_error());
    assert!(send(&browser, "x", &fields).await.status.is_client_error());
    assert!(send(&other, &csrf, &fields).await.status.is_client_error(), "a token of another session");
    assert_eq!(send(&site.browser(), &csrf, &fields).await.status, StatusCode::FORBIDDEN);
    let twice = [&fields[..], &[("action", "accept")]].concat();
    assert_eq!(send(&browser, &csrf, &twice).await.status, StatusCode::BAD_REQUEST);
    let none = [("plan", PLAN), ("question", "q"), ("action", "perhaps")];
    assert_eq!(send(&browser, &csrf, &none).await.status, StatusCode::BAD_REQUEST);
    assert!(plans.answers.lock().unwrap().is_empty());
}

#[tokio::test]
async fn hostile_texts_are_escaped_and_cut_and_forms_that_do_not_fit_can_be_declined() {
    let long = format!("{HOSTILE}{}", "long ".repeat(2_000));
    let choices: Vec<String> = (0..201).map(|n| n.to_string()).collect();
    let hostile = form(
        &long,
        json!({"type": "object", "properties": {
            HOSTILE: {"type": "string", "description": long, "default": HOSTILE},
            "b": {"type": "boolean", "title": long},
            "c": {"type": "string", "oneOf": [{"const": HOSTILE, "title": long}]},
            "d": {"type": "array", "title": HOSTILE, "items": {"type": "string", "enum": [HOSTILE]}},
        }}),
    );
    let address = json!({"method": "elicitation/create", "params": {"mode": "url", "message": long,
        "url": "https://bank.example/?a=\"><script>b</script>", "elicitationId": "1"}});
    let many =
        form("Too many", json!({"type": "object", "properties": {"c": {"type": "string", "enum": choices}}}));
    let waiting = [
        (PLAN, question("hostile", json!({"a": hostile}))),
        (PLAN, question("address", json!({"b": address}))),
        (PLAN, question("many", json!({"c": many}))),
    ];
    let (site, plans) = site(waiting).await;
    let browser = site.browser();
    let page = open(&browser, "alice", &of_plan()).await;
    assert!(!page.text.contains("<script") && !page.text.contains('\u{202e}'), "{}", page.text);
    assert!(page.text.len() < 40_000, "{} bytes", page.text.len());
    assert!(page.text.contains("rel=\"noopener noreferrer\""), "{}", page.text);
    assert_eq!(page.text.matches("value=\"accept\"").count(), 2, "none for the form that does not fit");
    let list = browser.get(PATH).await;
    assert!(!list.text.contains("<script") && list.text.len() < 20_000, "{}", list.text);

    let csrf = page.field("csrf");
    let fields = |question, action| [("plan", PLAN), ("question", question), ("action", action)];
    assert_eq!(send(&browser, &csrf, &fields("many", "accept")).await.status, StatusCode::BAD_REQUEST);
    assert_eq!(send(&browser, &csrf, &fields("many", "decline")).await.status, StatusCode::SEE_OTHER);
    assert_eq!(send(&browser, &csrf, &fields("address", "accept")).await.status, StatusCode::SEE_OTHER);
    assert_eq!(
        *plans.answers.lock().unwrap(),
        [json!({"c": {"action": "decline"}}), json!({"b": {"action": "accept"}})]
    );
}

#[tokio::test]
async fn the_account_page_counts_the_plans_and_a_store_that_does_not_answer_is_an_error_to_retry() {
    let (site, plans) = site([(PLAN, question("q", json!({"how": amount()})))]).await;
    let browser = site.browser();
    open(&browser, "alice", PATH).await;
    let account = browser.get("/oauth/account").await;
    assert!(
        account.text.contains("A plan waits for your answer.") && account.text.contains(PATH),
        "{}",
        account.text
    );
    *plans.broken.lock().unwrap() = Some(CannotAnswer::Unavailable);
    assert_eq!(browser.get(PATH).await.status, StatusCode::SERVICE_UNAVAILABLE);
    let account = browser.get("/oauth/account").await;
    assert!(
        account.status == StatusCode::OK && !account.text.contains("Questions of plans"),
        "{}",
        account.text
    );
}
