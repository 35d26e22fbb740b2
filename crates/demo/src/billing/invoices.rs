//! Tools for invoices and for revenue.

use std::collections::BTreeMap;

use rmcp::{
    handler::server::wrapper::{Json, Parameters},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    answer::{Failure, Page, check_date, default_limit, hints, matches, page},
    app::App,
    dataset::{Invoice, InvoiceStatus, State, TODAY, find_mut, plus_days},
};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListInvoices {
    /// Id of the account, such as acc_0001
    #[schemars(example = &"acc_0001")]
    account_id: Option<String>,
    /// Only invoices in this status
    status: Option<InvoiceStatus>,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetInvoice {
    /// Id of the invoice, such as inv_0001
    #[schemars(example = &"inv_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateInvoice {
    /// Id of the order, such as ord_0029
    #[schemars(example = &"ord_0029")]
    order_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SendInvoice {
    /// Id of the invoice, such as inv_0021
    #[schemars(example = &"inv_0021")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PayInvoice {
    /// Id of the invoice, such as inv_0001
    #[schemars(example = &"inv_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VoidInvoice {
    /// Id of the invoice, such as inv_0005
    #[schemars(example = &"inv_0005")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Period {
    /// First day of payment; the beginning if left out
    #[schemars(extend("format" = "date"), example = &"2026-01-01")]
    from: Option<String>,
    /// Last day of payment; today if left out
    #[schemars(extend("format" = "date"), example = &"2026-03-31")]
    to: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Revenue {
    /// First day counted
    from: String,
    /// Last day counted
    to: String,
    /// ISO 4217 code
    currency: &'static str,
    /// Paid in all, in cents
    total_cents: u64,
    /// Invoices counted
    invoices: u64,
    /// In order of time
    months: Vec<Month>,
    /// Highest total first
    accounts: Vec<Payer>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
struct Month {
    /// Month, YYYY-MM
    month: String,
    /// Paid in that month, in cents
    total_cents: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields, inline)]
struct Payer {
    /// Account id
    account_id: String,
    /// Company name
    name: String,
    /// Paid by that account, in cents
    total_cents: u64,
}

#[tool_router(router = invoices, vis = "pub(crate)")]
impl App {
    #[tool(
        title = "List invoices",
        description = "List invoices, page by page, oldest first. Can be narrowed to an account or a status: draft, sent, overdue (unpaid and late), paid or void.",
        annotations(
            title = "List invoices",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[(
            "What is overdue, with the names of the customers",
            "const page = await callTool('billing:invoices_list', { status: 'overdue', limit: 100 });\nconst rows = [];\nfor (const invoice of page.items) {\n  const account = await callTool('crm:accounts_get', { id: invoice.accountId });\n  rows.push({ customer: account.name, amountCents: invoice.amountCents, dueAt: invoice.dueAt });\n}\nreturn rows;",
        )])
    )]
    fn invoices_list(
        &self,
        Parameters(input): Parameters<ListInvoices>,
    ) -> Result<Json<Page<Invoice>>, Failure> {
        self.with(|state| {
            page(&state.invoices, input.limit, input.cursor.as_deref(), |invoice| {
                matches(input.account_id.as_ref(), &invoice.account_id)
                    && matches(input.status.as_ref(), &invoice.status)
            })
        })
    }

    #[tool(
        title = "Get an invoice",
        description = "Get one invoice by id: amount, order, status, and the days it was issued, is due and was paid.",
        annotations(
            title = "Get an invoice",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[])
    )]
    fn invoices_get(&self, Parameters(input): Parameters<GetInvoice>) -> Result<Json<Invoice>, Failure> {
        self.with(|state| state.invoice(&input.id).cloned())
    }

    #[tool(
        title = "Create an invoice",
        description = "Create a draft invoice for an order, due 30 days from today. Refused when the order was cancelled or already has an invoice that is not void.",
        annotations(
            title = "Create an invoice",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = false
        ),
        meta = hints("billing:write", &[])
    )]
    fn invoices_create(
        &self,
        Parameters(input): Parameters<CreateInvoice>,
    ) -> Result<Json<Invoice>, Failure> {
        self.with(|state| create(state, &input.order_id))
    }

    #[tool(
        title = "Send an invoice",
        description = "Send a draft invoice to the customer by e-mail.",
        annotations(
            title = "Send an invoice",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = false,
            open_world_hint = true
        ),
        meta = hints("billing:write", &[])
    )]
    fn invoices_send(&self, Parameters(input): Parameters<SendInvoice>) -> Result<Json<Invoice>, Failure> {
        self.with(|state| advance(state, &input.id, &["draft"], "sent"))
    }

    #[tool(
        title = "Mark an invoice as paid",
        description = "Record the payment of an invoice: mark it as paid today.",
        annotations(
            title = "Mark an invoice as paid",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:write", &[])
    )]
    fn invoices_pay(&self, Parameters(input): Parameters<PayInvoice>) -> Result<Json<Invoice>, Failure> {
        self.with(|state| advance(state, &input.id, &["sent", "overdue"], "paid"))
    }

    #[tool(
        title = "Void an invoice",
        description = "Void an invoice written by mistake, so that nobody has to pay it. Paid invoices cannot be voided.",
        annotations(
            title = "Void an invoice",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:delete", &[])
    )]
    fn invoices_void(&self, Parameters(input): Parameters<VoidInvoice>) -> Result<Json<Invoice>, Failure> {
        self.with(|state| advance(state, &input.id, &["draft", "sent", "overdue"], "void"))
    }

    #[tool(
        title = "Report revenue",
        description = "Report the revenue of a period: the sum of paid invoices in total, for each month and for each account, that is, how much money was earned.",
        annotations(
            title = "Report revenue",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[(
            "Revenue of the first quarter by month, in euros",
            "const report = await callTool('billing:revenue_report', { from: '2026-01-01', to: '2026-03-31' });\nreturn report.months.map((row) => `${row.month}: ${row.totalCents / 100}`);",
        )])
    )]
    fn revenue_report(&self, Parameters(input): Parameters<Period>) -> Result<Json<Revenue>, Failure> {
        self.with(|state| revenue(state, input))
    }
}

fn create(state: &mut State, order_id: &str) -> Result<Invoice, Failure> {
    let order = state.order(order_id)?.clone();
    if order.status == "cancelled" {
        return Failure::invalid(format!("The order {} was cancelled and cannot be billed.", order.id));
    }
    let billed =
        state.invoices.values().find(|invoice| invoice.order_id == order.id && invoice.status != "void");
    if let Some(invoice) = billed {
        return Failure::invalid(format!("The order {} already has the invoice {}.", order.id, invoice.id));
    }
    let invoice = Invoice {
        id: state.next_id("inv"),
        account_id: order.account_id,
        order_id: order.id,
        status: "draft".to_owned(),
        amount_cents: order.total_cents,
        currency: order.currency,
        issued_at: TODAY.to_owned(),
        due_at: plus_days(TODAY, 30),
        paid_at: None,
    };
    state.invoices.insert(invoice.id.clone(), invoice.clone());
    Ok(invoice)
}

/// Moves the invoice to `next` when it is in one of the statuses `from`, and leaves it when it is
/// there already. Only the way to `sent` cannot be walked twice: it sends an e-mail.
fn advance(state: &mut State, id: &str, from: &[&str], next: &str) -> Result<Invoice, Failure> {
    let invoice = find_mut(&mut state.invoices, "invoice", id)?;
    let there = invoice.status == next && next != "sent";
    if !there && !from.contains(&invoice.status.as_str()) {
        return Failure::invalid(format!(
            "The invoice {} is {}; only an invoice that is {} can become {next}.",
            invoice.id,
            invoice.status,
            from.join(" or ")
        ));
    }
    if !there {
        invoice.status = next.to_owned();
        invoice.paid_at = (next == "paid").then(|| TODAY.to_owned());
    }
    let invoice = invoice.clone();
    if next == "paid"
        && let Some(order) = state.orders.get_mut(&invoice.order_id).filter(|order| order.status == "pending")
    {
        order.status = "paid".to_owned();
    }
    Ok(invoice)
}

fn revenue(state: &State, period: Period) -> Result<Revenue, Failure> {
    let from = period.from.unwrap_or_else(|| "2000-01-01".to_owned());
    let to = period.to.unwrap_or_else(|| TODAY.to_owned());
    check_date("from", &from)?;
    check_date("to", &to)?;
    if from > to {
        return Failure::invalid(format!("'from' ({from}) is later than 'to' ({to})."));
    }
    let (mut total_cents, mut invoices) = (0, 0);
    let mut months: BTreeMap<&str, u64> = BTreeMap::new();
    let mut accounts: BTreeMap<&str, u64> = BTreeMap::new();
    for invoice in state.invoices.values() {
        let Some(paid) = invoice.paid_at.as_ref().filter(|paid| (&from..=&to).contains(paid)) else {
            continue;
        };
        invoices += 1;
        total_cents += invoice.amount_cents;
        *months.entry(&paid[..7]).or_default() += invoice.amount_cents;
        *accounts.entry(&invoice.account_id).or_default() += invoice.amount_cents;
    }
    let months =
        months.into_iter().map(|(month, total_cents)| Month { month: month.to_owned(), total_cents });
    let mut accounts: Vec<Payer> = accounts
        .into_iter()
        .map(|(id, total_cents)| Payer {
            account_id: id.to_owned(),
            name: state.accounts.get(id).map(|account| account.name.clone()).unwrap_or_default(),
            total_cents,
        })
        .collect();
    accounts.sort_by_key(|payer| std::cmp::Reverse(payer.total_cents));
    let months = months.collect();
    Ok(Revenue { from, to, currency: "EUR", total_cents, invoices, months, accounts })
}
