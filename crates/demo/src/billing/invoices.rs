//! Tools for invoices and for revenue.

use std::collections::BTreeMap;

use serde_json::json;

use crate::dataset::{Invoice, State, TODAY, find_mut, plus_days};
use crate::schema::{
    INVOICE_STATUS, by_id, choice, count, date, id, invoice, list_input, object, page_of, plain, record,
};
use crate::tool::{Args, Effect, Failure, Outcome, Spec, page, row};

pub(super) fn tools() -> Vec<Spec> {
    vec![
        Spec {
            name: "invoices_list",
            title: "List invoices",
            effect: Effect::Read,
            description: "List invoices, page by page, oldest first. Can be narrowed to an account or a status: draft, sent, overdue (unpaid and late), paid or void.",
            input: list_input(
                json!({
                    "accountId": id("account", "acc_0001"),
                    "status": choice("Only invoices in this status", &INVOICE_STATUS),
                }),
                &[],
            ),
            output: page_of(invoice()),
            examples: &[(
                "What is overdue, with the names of the customers",
                "const page = await callTool('billing:invoices_list', { status: 'overdue', limit: 100 });\nconst rows = [];\nfor (const invoice of page.items) {\n  const account = await callTool('crm:accounts_get', { id: invoice.accountId });\n  rows.push({ customer: account.name, amountCents: invoice.amountCents, dueAt: invoice.dueAt });\n}\nreturn rows;",
            )],
            run: |state, args| {
                page(&state.invoices, args, |invoice| {
                    args.matches("accountId", &invoice.account_id) && args.matches("status", &invoice.status)
                })
            },
        },
        Spec {
            name: "invoices_get",
            title: "Get an invoice",
            effect: Effect::Read,
            description: "Get one invoice by id: amount, order, status, and the days it was issued, is due and was paid.",
            input: by_id("invoice", "inv_0001"),
            output: invoice(),
            examples: &[],
            run: |state, args| state.invoice(args.text("id")).map(row),
        },
        Spec {
            name: "invoices_create",
            title: "Create an invoice",
            effect: Effect::Create,
            description: "Create a draft invoice for an order, due 30 days from today. Refused when the order was cancelled or already has an invoice that is not void.",
            input: object(json!({ "orderId": id("order", "ord_0029") }), &["orderId"]),
            output: invoice(),
            examples: &[],
            run: create,
        },
        Spec {
            name: "invoices_send",
            title: "Send an invoice",
            effect: Effect::Notify,
            description: "Send a draft invoice to the customer by e-mail.",
            input: by_id("invoice", "inv_0021"),
            output: invoice(),
            examples: &[],
            run: |state, args| advance(state, args, &["draft"], "sent"),
        },
        Spec {
            name: "invoices_pay",
            title: "Mark an invoice as paid",
            effect: Effect::Update,
            description: "Record the payment of an invoice: mark it as paid today.",
            input: by_id("invoice", "inv_0001"),
            output: invoice(),
            examples: &[],
            run: |state, args| advance(state, args, &["sent", "overdue"], "paid"),
        },
        Spec {
            name: "invoices_void",
            title: "Void an invoice",
            effect: Effect::Destroy,
            description: "Void an invoice written by mistake, so that nobody has to pay it. Paid invoices cannot be voided.",
            input: by_id("invoice", "inv_0005"),
            output: invoice(),
            examples: &[],
            run: |state, args| advance(state, args, &["draft", "sent", "overdue"], "void"),
        },
        Spec {
            name: "revenue_report",
            title: "Report revenue",
            effect: Effect::Read,
            description: "Report the revenue of a period: the sum of paid invoices in total, for each month and for each account, that is, how much money was earned.",
            input: object(
                json!({
                    "from": date("First day of payment; the beginning if left out", "2026-01-01"),
                    "to": date("Last day of payment; today if left out", "2026-03-31"),
                }),
                &[],
            ),
            output: report_schema(),
            examples: &[(
                "Revenue of the first quarter by month, in euros",
                "const report = await callTool('billing:revenue_report', { from: '2026-01-01', to: '2026-03-31' });\nreturn report.months.map((row) => `${row.month}: ${row.totalCents / 100}`);",
            )],
            run: revenue,
        },
    ]
}

fn report_schema() -> serde_json::Value {
    let month = record(
        json!({ "month": plain("Month, YYYY-MM"), "totalCents": count("Paid in that month, in cents") }),
    );
    let account = record(json!({
        "accountId": plain("Account id"),
        "name": plain("Company name"),
        "totalCents": count("Paid by that account, in cents"),
    }));
    record(json!({
        "from": plain("First day counted"),
        "to": plain("Last day counted"),
        "currency": plain("ISO 4217 code"),
        "totalCents": count("Paid in all, in cents"),
        "invoices": count("Invoices counted"),
        "months": { "type": "array", "items": month, "description": "In order of time" },
        "accounts": { "type": "array", "items": account, "description": "Highest total first" },
    }))
}

fn create(state: &mut State, args: &Args<'_>) -> Outcome {
    let order = state.order(args.text("orderId"))?.clone();
    if order.status == "cancelled" {
        return Failure::invalid(format!("The order {} was cancelled and cannot be billed.", order.id));
    }
    let billed =
        state.invoices.values().find(|invoice| invoice.order_id == order.id && invoice.status != "void");
    if let Some(invoice) = billed {
        return Failure::invalid(format!("The order {} already has the invoice {}.", order.id, invoice.id));
    }
    let id = state.next_id("inv");
    let invoice = Invoice {
        id: id.clone(),
        account_id: order.account_id,
        order_id: order.id,
        status: "draft".to_owned(),
        amount_cents: order.total_cents,
        currency: order.currency,
        issued_at: TODAY.to_owned(),
        due_at: plus_days(TODAY, 30),
        paid_at: None,
    };
    let answer = row(&invoice);
    state.invoices.insert(id, invoice);
    Ok(answer)
}

/// Moves the invoice to `next` when it is in one of the statuses `from`, and leaves it when it is
/// there already. Only the way to `sent` cannot be walked twice: it sends an e-mail.
fn advance(state: &mut State, args: &Args<'_>, from: &[&str], next: &str) -> Outcome {
    let invoice = find_mut(&mut state.invoices, "invoice", args.text("id"))?;
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
    let answer = row(invoice);
    let order_id = invoice.order_id.clone();
    if next == "paid"
        && let Some(order) = state.orders.get_mut(&order_id).filter(|order| order.status == "pending")
    {
        order.status = "paid".to_owned();
    }
    Ok(answer)
}

fn revenue(state: &mut State, args: &Args<'_>) -> Outcome {
    let from = args.optional("from").unwrap_or("2000-01-01");
    let to = args.optional("to").unwrap_or(TODAY);
    if from > to {
        return Failure::invalid(format!("'from' ({from}) is later than 'to' ({to})."));
    }
    let (mut total, mut invoices) = (0, 0);
    let mut months: BTreeMap<&str, u64> = BTreeMap::new();
    let mut accounts: BTreeMap<&str, u64> = BTreeMap::new();
    for invoice in state.invoices.values() {
        let Some(paid) = invoice.paid_at.as_deref().filter(|paid| (from..=to).contains(paid)) else {
            continue;
        };
        invoices += 1;
        total += invoice.amount_cents;
        *months.entry(&paid[..7]).or_default() += invoice.amount_cents;
        *accounts.entry(&invoice.account_id).or_default() += invoice.amount_cents;
    }
    let mut accounts: Vec<(&str, u64)> = accounts.into_iter().collect();
    accounts.sort_by_key(|(_, cents)| std::cmp::Reverse(*cents));
    let accounts: Vec<_> = accounts
        .into_iter()
        .map(|(id, cents)| {
            let name = state.accounts.get(id).map_or("", |account| account.name.as_str());
            json!({ "accountId": id, "name": name, "totalCents": cents })
        })
        .collect();
    let months: Vec<_> =
        months.into_iter().map(|(month, cents)| json!({ "month": month, "totalCents": cents })).collect();
    Ok(json!({
        "from": from, "to": to, "currency": "EUR",
        "totalCents": total, "invoices": invoices, "months": months, "accounts": accounts,
    }))
}
