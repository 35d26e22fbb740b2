//! Resources and prompts of billing.

use rmcp::model::{Prompt, PromptArgument, Resource, ResourceTemplate};
use serde_json::json;

use crate::app::{Shelf, argument};
use crate::dataset::TODAY;

const JSON: &str = "application/json";

pub(crate) fn shelf() -> Shelf {
    Shelf {
        resources: vec![
            Resource::new("billing://products", "products")
                .with_title("Catalogue")
                .with_description("Every product with price and stock, as JSON")
                .with_mime_type(JSON),
        ],
        templates: vec![
            ResourceTemplate::new("billing://invoices/{id}", "invoice")
                .with_title("One invoice")
                .with_description("An invoice by id with its order, as JSON")
                .with_mime_type(JSON),
        ],
        prompts: vec![
            Prompt::new(
                "remind_payment",
                Some("Write a reminder for an invoice that was not paid"),
                Some(vec![
                    PromptArgument::new("invoice_id")
                        .with_description("Id of the invoice")
                        .with_required(true),
                ]),
            )
            .with_title("Remind of a payment"),
        ],
        read: |state, uri| match uri.strip_prefix("billing://")? {
            "products" => Some((JSON, format!("{:#}", json!(state.products.values().collect::<Vec<_>>())))),
            path => {
                let invoice = state.invoices.get(path.strip_prefix("invoices/")?)?;
                let order = state.orders.get(&invoice.order_id);
                Some((JSON, format!("{:#}", json!({ "invoice": invoice, "order": order }))))
            }
        },
        prompt: |state, name, args| {
            (name == "remind_payment").then(|| {
                let invoice = state.invoice(argument(args, "invoice_id").unwrap_or_default())?;
                let account = state.account(&invoice.account_id)?;
                Ok(format!(
                    "Today is {TODAY}. Write a short, friendly reminder to {} about the invoice {}: {}.{:02} {}, \
                     due on {}, status {}.",
                    account.name,
                    invoice.id,
                    invoice.amount_cents / 100,
                    invoice.amount_cents % 100,
                    invoice.currency,
                    invoice.due_at,
                    invoice.status,
                ))
            })
        },
        values: |state, target, argument| match (target, argument) {
            ("remind_payment", "invoice_id") | ("billing://invoices/{id}", "id") => {
                state.invoices.keys().cloned().collect()
            }
            _ => Vec::new(),
        },
    }
}
