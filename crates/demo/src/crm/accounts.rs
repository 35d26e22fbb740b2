//! Tools for accounts, and the export of everything in them.

use serde_json::json;

use crate::dataset::{Account, State, TODAY, find_mut};
use crate::schema::{
    ACCOUNT_STATUS, PLANS, account, by_id, choice, count, id, list_input, object, page_of, plain, record,
    text,
};
use crate::tool::{Effect, Failure, Spec, page, row};

pub(super) fn tools() -> Vec<Spec> {
    vec![
        Spec {
            name: "accounts_list",
            title: "List accounts",
            effect: Effect::Read,
            description: "List accounts, the customer companies, page by page. Can be narrowed to a plan, a status such as churned, or a country.",
            input: list_input(
                json!({
                    "plan": choice("Only accounts on this plan", &PLANS),
                    "status": choice("Only accounts in this status", &ACCOUNT_STATUS),
                    "country": plain("Only accounts in this country, by its two-letter code"),
                }),
                &[],
            ),
            output: page_of(account()),
            examples: &[(
                "Count active accounts for each plan",
                "const page = await callTool('crm:accounts_list', { status: 'active', limit: 100 });\nconst counts = {};\nfor (const account of page.items) counts[account.plan] = (counts[account.plan] ?? 0) + 1;\nreturn counts;",
            )],
            run: |state, args| {
                page(&state.accounts, args, |account| {
                    args.matches("plan", &account.plan)
                        && args.matches("status", &account.status)
                        && args.matches("country", &account.country)
                })
            },
        },
        Spec {
            name: "accounts_get",
            title: "Get an account",
            effect: Effect::Read,
            description: "Get one account by id: company name, industry, plan, status and country.",
            input: by_id("account", "acc_0001"),
            output: account(),
            examples: &[],
            run: |state, args| state.account(args.text("id")).map(row),
        },
        Spec {
            name: "accounts_search",
            title: "Search accounts",
            effect: Effect::Read,
            description: "Search accounts by part of the company name or the industry. Finds a company when the id is not known.",
            input: list_input(
                json!({ "query": text("Words in the company name or industry", "north") }),
                &["query"],
            ),
            output: page_of(account()),
            examples: &[],
            run: |state, args| {
                page(&state.accounts, args, |account| args.finds(&[&account.name, &account.industry]))
            },
        },
        Spec {
            name: "accounts_create",
            title: "Create an account",
            effect: Effect::Create,
            description: "Create a new account for a customer company. It begins as a trial. Returns the account with its new id.",
            input: object(
                json!({
                    "name": text("Company name, not used by another account", "Proseware Games"),
                    "industry": text("What the company does", "software"),
                    "plan": choice("Plan; free if left out", &PLANS),
                    "country": text("Two-letter country code", "DE"),
                }),
                &["name", "industry", "country"],
            ),
            output: account(),
            examples: &[],
            run: |state, args| {
                name_is_free(state, args.text("name"), None)?;
                let id = state.next_id("acc");
                let account = Account {
                    id: id.clone(),
                    name: args.owned("name"),
                    industry: args.owned("industry"),
                    plan: args.optional("plan").unwrap_or("free").to_owned(),
                    status: "trial".to_owned(),
                    country: args.owned("country").to_uppercase(),
                    created_at: TODAY.to_owned(),
                };
                let answer = row(&account);
                state.accounts.insert(id, account);
                Ok(answer)
            },
        },
        Spec {
            name: "accounts_update",
            title: "Update an account",
            effect: Effect::Update,
            description: "Update an account: rename the company, upgrade or change the plan, change the status or industry. Fields left out stay as they are.",
            input: object(
                json!({
                    "id": id("account", "acc_0004"),
                    "name": text("New company name", "Tailspin Toys Ltd"),
                    "industry": text("New industry", "games"),
                    "plan": choice("New plan", &PLANS),
                    "status": choice("New status", &ACCOUNT_STATUS),
                }),
                &["id"],
            ),
            output: account(),
            examples: &[],
            run: |state, args| {
                state.account(args.text("id"))?;
                if let Some(name) = args.optional("name") {
                    name_is_free(state, name, args.optional("id"))?;
                }
                let account = find_mut(&mut state.accounts, "account", args.text("id"))?;
                args.set("name", &mut account.name);
                args.set("industry", &mut account.industry);
                args.set("plan", &mut account.plan);
                args.set("status", &mut account.status);
                Ok(row(account))
            },
        },
        Spec {
            name: "exports_start",
            title: "Start a data export",
            effect: Effect::Create,
            description: "Start an export of all data of an account, its users, orders, invoices and tickets, as a file to download. At most three exports a minute.",
            input: object(json!({ "accountId": id("account", "acc_0001") }), &["accountId"]),
            output: record(json!({
                "id": plain("Id of the export"),
                "accountId": plain("Account exported"),
                "rows": count("Rows the export holds"),
                "startedAt": plain("Day it was started"),
            })),
            examples: &[],
            run: |state, args| {
                let account = state.account(args.text("accountId"))?.id.clone();
                state.spend("exports_start")?;
                let rows = 1
                    + state.users.values().filter(|row| row.account_id == account).count()
                    + state.orders.values().filter(|row| row.account_id == account).count()
                    + state.invoices.values().filter(|row| row.account_id == account).count()
                    + state.tickets.values().filter(|row| row.account_id == account).count();
                let id = state.next_id("exp");
                Ok(json!({ "id": id, "accountId": account, "rows": rows, "startedAt": TODAY }))
            },
        },
    ]
}

fn name_is_free(state: &State, name: &str, except: Option<&str>) -> Result<(), Failure> {
    let taken = state.accounts.values().find(|account| {
        account.name.eq_ignore_ascii_case(name.trim()) && except != Some(account.id.as_str())
    });
    match taken {
        Some(account) => Failure::invalid(format!("The name {name} is taken by the account {}.", account.id)),
        None => Ok(()),
    }
}
