//! The rows, as they appear in answers.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) industry: String,
    pub(crate) plan: String,
    pub(crate) status: String,
    pub(crate) country: String,
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) name: String,
    pub(crate) email: String,
    pub(crate) role: String,
    pub(crate) active: bool,
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Product {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) category: String,
    pub(crate) price_cents: u64,
    pub(crate) currency: String,
    pub(crate) stock: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    pub(crate) product_id: String,
    pub(crate) quantity: u64,
    pub(crate) unit_price_cents: u64,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) user_id: String,
    pub(crate) status: String,
    pub(crate) items: Vec<Item>,
    pub(crate) total_cents: u64,
    pub(crate) currency: String,
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Invoice {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) order_id: String,
    pub(crate) status: String,
    pub(crate) amount_cents: u64,
    pub(crate) currency: String,
    pub(crate) issued_at: String,
    pub(crate) due_at: String,
    pub(crate) paid_at: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Comment {
    pub(crate) author: String,
    pub(crate) text: String,
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ticket {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) requester_id: String,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) status: String,
    pub(crate) priority: String,
    pub(crate) assignee: Option<String>,
    pub(crate) escalated: bool,
    pub(crate) comments: Vec<Comment>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}
