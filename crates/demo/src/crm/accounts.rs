//! Tools for accounts, and the export of everything in them.

use rmcp::{
    handler::server::wrapper::{Json, Parameters},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    answer::{Failure, Page, check_text, contains_words, default_limit, hints, matches, page},
    app::App,
    dataset::{Account, AccountStatus, Plan, State, TODAY, find_mut, word},
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListAccounts {
    /// Only accounts on this plan
    plan: Option<Plan>,
    /// Only accounts in this status
    status: Option<AccountStatus>,
    /// Only accounts in this country, by its two-letter code
    country: Option<String>,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetAccount {
    /// Id of the account, such as acc_0001
    #[schemars(example = &"acc_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SearchAccounts {
    /// Words in the company name or industry
    #[schemars(length(min = 1, max = 2000), example = &"north")]
    query: String,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateAccount {
    /// Company name, not used by another account
    #[schemars(length(min = 1, max = 2000), example = &"Proseware Games")]
    name: String,
    /// What the company does
    #[schemars(length(min = 1, max = 2000), example = &"software")]
    industry: String,
    /// Plan; free if left out
    plan: Option<Plan>,
    /// Two-letter country code
    #[schemars(length(min = 1, max = 2000), example = &"DE")]
    country: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UpdateAccount {
    /// Id of the account, such as acc_0004
    #[schemars(example = &"acc_0004")]
    id: String,
    /// New company name
    #[schemars(length(min = 1, max = 2000), example = &"Tailspin Toys Ltd")]
    name: Option<String>,
    /// New industry
    #[schemars(length(min = 1, max = 2000), example = &"games")]
    industry: Option<String>,
    /// New plan
    plan: Option<Plan>,
    /// New status
    status: Option<AccountStatus>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StartExport {
    /// Id of the account, such as acc_0001
    #[schemars(example = &"acc_0001")]
    account_id: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Export {
    /// Id of the export
    id: String,
    /// Account exported
    account_id: String,
    /// Rows the export holds
    rows: usize,
    /// Day it was started
    started_at: &'static str,
}

#[tool_router(router = accounts, vis = "pub(crate)")]
impl App {
    #[tool(
        title = "List accounts",
        description = "List accounts, the customer companies, page by page. Can be narrowed to a plan, a status such as churned, or a country.",
        annotations(
            title = "List accounts",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:read", &[(
            "Count active accounts for each plan",
            "const page = await callTool('crm:accounts_list', { status: 'active', limit: 100 });\nconst counts = {};\nfor (const account of page.items) counts[account.plan] = (counts[account.plan] ?? 0) + 1;\nreturn counts;",
        )])
    )]
    fn accounts_list(
        &self,
        Parameters(input): Parameters<ListAccounts>,
    ) -> Result<Json<Page<Account>>, Failure> {
        self.with(|state| {
            page(&state.accounts, input.limit, input.cursor.as_deref(), |account| {
                matches(input.plan.as_ref(), &account.plan)
                    && matches(input.status.as_ref(), &account.status)
                    && matches(input.country.as_ref(), &account.country)
            })
        })
    }

    #[tool(
        title = "Get an account",
        description = "Get one account by id: company name, industry, plan, status and country.",
        annotations(
            title = "Get an account",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:read", &[])
    )]
    fn accounts_get(&self, Parameters(input): Parameters<GetAccount>) -> Result<Json<Account>, Failure> {
        self.with(|state| state.account(&input.id).cloned())
    }

    #[tool(
        title = "Search accounts",
        description = "Search accounts by part of the company name or the industry. Finds a company when the id is not known.",
        annotations(
            title = "Search accounts",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:read", &[])
    )]
    fn accounts_search(
        &self,
        Parameters(input): Parameters<SearchAccounts>,
    ) -> Result<Json<Page<Account>>, Failure> {
        self.with(|state| {
            check_text("query", &input.query)?;
            page(&state.accounts, input.limit, input.cursor.as_deref(), |account| {
                contains_words(&input.query, &[&account.name, &account.industry])
            })
        })
    }

    #[tool(
        title = "Create an account",
        description = "Create a new account for a customer company. It begins as a trial. Returns the account with its new id.",
        annotations(
            title = "Create an account",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        ),
        meta = hints("crm:write", &[])
    )]
    fn accounts_create(
        &self,
        Parameters(input): Parameters<CreateAccount>,
    ) -> Result<Json<Account>, Failure> {
        self.with(|state| {
            let name = check_text("name", &input.name)?;
            let industry = check_text("industry", &input.industry)?;
            let country = check_text("country", &input.country)?.to_uppercase();
            name_is_free(state, &name, None)?;
            let account = Account {
                id: state.next_id("acc"),
                name,
                industry,
                plan: word(input.plan.unwrap_or(Plan::Free)),
                status: word(AccountStatus::Trial),
                country,
                created_at: TODAY.to_owned(),
            };
            state.accounts.insert(account.id.clone(), account.clone());
            Ok(account)
        })
    }

    #[tool(
        title = "Update an account",
        description = "Update an account: rename the company, upgrade or change the plan, change the status or industry. Fields left out stay as they are.",
        annotations(
            title = "Update an account",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("crm:write", &[])
    )]
    fn accounts_update(
        &self,
        Parameters(input): Parameters<UpdateAccount>,
    ) -> Result<Json<Account>, Failure> {
        self.with(|state| {
            let name = input.name.map(|name| check_text("name", &name)).transpose()?;
            let industry = input.industry.map(|industry| check_text("industry", &industry)).transpose()?;
            state.account(&input.id)?;
            if let Some(name) = &name {
                name_is_free(state, name, Some(&input.id))?;
            }
            let account = find_mut(&mut state.accounts, "account", &input.id)?;
            account.name = name.unwrap_or(account.name.clone());
            account.industry = industry.unwrap_or(account.industry.clone());
            account.plan = input.plan.map_or(account.plan.clone(), word);
            account.status = input.status.map_or(account.status.clone(), word);
            Ok(account.clone())
        })
    }

    #[tool(
        title = "Start a data export",
        description = "Start an export of all data of an account, its users, orders, invoices and tickets, as a file to download. At most three exports a minute.",
        annotations(
            title = "Start a data export",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        ),
        meta = hints("crm:write", &[])
    )]
    fn exports_start(&self, Parameters(input): Parameters<StartExport>) -> Result<Json<Export>, Failure> {
        self.with(|state| {
            let account = state.account(&input.account_id)?.id.clone();
            state.spend("exports_start")?;
            let rows = 1
                + state.users.values().filter(|row| row.account_id == account).count()
                + state.orders.values().filter(|row| row.account_id == account).count()
                + state.invoices.values().filter(|row| row.account_id == account).count()
                + state.tickets.values().filter(|row| row.account_id == account).count();
            Ok(Export { id: state.next_id("exp"), account_id: account, rows, started_at: TODAY })
        })
    }
}

fn name_is_free(state: &State, name: &str, except: Option<&str>) -> Result<(), Failure> {
    let taken = state
        .accounts
        .values()
        .find(|account| account.name.eq_ignore_ascii_case(name) && except != Some(account.id.as_str()));
    match taken {
        Some(account) => Failure::invalid(format!("The name {name} is taken by the account {}.", account.id)),
        None => Ok(()),
    }
}
