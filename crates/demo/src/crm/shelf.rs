//! Resources and prompts of the CRM.

use rmcp::model::{JsonObject, Prompt, PromptArgument, Resource, ResourceTemplate};
use serde_json::json;

use crate::{
    answer::Failure,
    app::{Shelf, argument},
    dataset::State,
};

const PRICING: &str = "\
# Pricing

| plan | seats | support |
|---|---|---|
| free | up to 3 | community |
| team | up to 50 | e-mail, next working day |
| enterprise | any | telephone, within 4 hours |

A trial lasts 30 days and has everything the team plan has. Downgrades take effect at the end of
the month that was paid for.
";

pub(crate) fn shelf() -> Shelf {
    Shelf {
        resources: vec![
            Resource::new("crm://accounts", "accounts")
                .with_title("All accounts")
                .with_description("Every account with its plan and status, as JSON")
                .with_mime_type("application/json"),
            Resource::new("crm://handbook/pricing", "pricing")
                .with_title("Pricing handbook")
                .with_description("What each plan includes and how trials and downgrades work")
                .with_mime_type("text/markdown")
                .with_size(PRICING.len() as u64),
        ],
        templates: vec![
            ResourceTemplate::new("crm://users/{id}", "user")
                .with_title("One user")
                .with_description("A user by id, as JSON")
                .with_mime_type("application/json"),
            ResourceTemplate::new("crm://accounts/{id}", "account")
                .with_title("One account")
                .with_description("An account by id with its users, as JSON")
                .with_mime_type("application/json"),
        ],
        prompts: vec![
            Prompt::new(
                "summarise_account",
                Some("Summarise how things stand with one account"),
                Some(vec![
                    PromptArgument::new("account_id")
                        .with_description("Id of the account")
                        .with_required(true),
                ]),
            )
            .with_title("Summarise an account"),
        ],
        read,
        prompt,
        values,
    }
}

/// The MIME type and text behind a URI.
fn read(state: &State, uri: &str) -> Option<(&'static str, String)> {
    const JSON: &str = "application/json";
    let pretty = |value: &serde_json::Value| Some((JSON, format!("{value:#}")));
    match uri.strip_prefix("crm://")? {
        "accounts" => pretty(&json!(state.accounts.values().collect::<Vec<_>>())),
        "handbook/pricing" => Some(("text/markdown", PRICING.to_owned())),
        path => match path.split_once('/')? {
            ("users", id) => pretty(&json!(state.users.get(id)?)),
            ("accounts", id) => {
                let account = state.accounts.get(id)?;
                let users: Vec<_> = state.users.values().filter(|user| user.account_id == id).collect();
                pretty(&json!({ "account": account, "users": users }))
            }
            _ => None,
        },
    }
}

/// The text of the prompt `name`.
fn prompt(state: &State, name: &str, args: &JsonObject) -> Option<Result<String, Failure>> {
    (name == "summarise_account").then(|| {
        let account = state.account(argument(args, "account_id").unwrap_or_default())?;
        let of = |id: &str| id == account.id;
        Ok(format!(
            "Summarise in five sentences how things stand with {name} ({id}): plan {plan}, status {status}, \
             {users} users, {orders} orders, {late} overdue invoices, {tickets} tickets not closed. \
             Say what we should do next.",
            name = account.name,
            id = account.id,
            plan = account.plan,
            status = account.status,
            users = state.users.values().filter(|user| of(&user.account_id)).count(),
            orders = state.orders.values().filter(|order| of(&order.account_id)).count(),
            late = state
                .invoices
                .values()
                .filter(|invoice| of(&invoice.account_id) && invoice.status == "overdue")
                .count(),
            tickets = state
                .tickets
                .values()
                .filter(|ticket| of(&ticket.account_id) && ticket.status != "closed")
                .count(),
        ))
    })
}

/// The values that an argument of a prompt or a template can take.
fn values(state: &State, target: &str, argument: &str) -> Vec<String> {
    match (target, argument) {
        ("summarise_account", "account_id") | ("crm://accounts/{id}", "id") => {
            state.accounts.keys().cloned().collect()
        }
        ("crm://users/{id}", "id") => state.users.keys().cloned().collect(),
        _ => Vec::new(),
    }
}
