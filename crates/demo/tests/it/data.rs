use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::Demo;

fn by_id(rows: Vec<Value>) -> BTreeMap<String, Value> {
    rows.into_iter().map(|row| (row["id"].as_str().unwrap().to_owned(), row)).collect()
}

#[test]
fn every_reference_leads_to_a_row_of_the_same_account() {
    let demo = Demo::new();
    let all = |tool: &str| by_id(demo.all(tool, json!({})));
    let (accounts, users) = (all("crm:accounts_list"), all("crm:users_list"));
    let (products, orders) = (all("billing:products_list"), all("billing:orders_list"));
    for user in users.values() {
        assert!(accounts.contains_key(user["accountId"].as_str().unwrap()), "{user}");
    }
    for order in orders.values() {
        assert_eq!(users[order["userId"].as_str().unwrap()]["accountId"], order["accountId"], "{order}");
        let mut sum = 0;
        for item in order["items"].as_array().unwrap() {
            assert!(products.contains_key(item["productId"].as_str().unwrap()), "{item}");
            sum += item["quantity"].as_u64().unwrap() * item["unitPriceCents"].as_u64().unwrap();
        }
        assert_eq!(order["totalCents"], sum, "{order}");
    }
    for invoice in all("billing:invoices_list").values() {
        let order = &orders[invoice["orderId"].as_str().unwrap()];
        assert_eq!(order["accountId"], invoice["accountId"]);
        assert_eq!(order["totalCents"], invoice["amountCents"]);
        assert_eq!(invoice["status"] == "paid", invoice["paidAt"].is_string(), "{invoice}");
    }
    for ticket in all("support:tickets_list").values() {
        assert_eq!(
            users[ticket["requesterId"].as_str().unwrap()]["accountId"],
            ticket["accountId"],
            "{ticket}"
        );
    }
}

#[test]
fn nothing_in_the_seed_happens_after_today() {
    let demo = Demo::new();
    for tool in ["crm:users_list", "crm:accounts_list", "billing:orders_list", "support:tickets_list"] {
        for row in demo.all(tool, json!({})) {
            assert!(row["createdAt"].as_str().unwrap() <= gatewright_demo::TODAY, "{row}");
        }
    }
}

#[test]
fn a_filter_keeps_exactly_the_rows_that_have_the_value() {
    let demo = Demo::new();
    let all = demo.all("support:tickets_list", json!({}));
    let open = demo.all("support:tickets_list", json!({ "status": "open" }));
    let expected: Vec<_> = all.into_iter().filter(|row| row["status"] == "open").collect();
    assert!(!open.is_empty());
    assert_eq!(open, expected);
}

#[test]
fn what_one_app_changes_the_others_see() {
    let demo = Demo::new();
    let account =
        demo.ok("crm:accounts_create", json!({ "name": "Proseware", "industry": "games", "country": "de" }));
    let user = demo.ok(
        "crm:users_create",
        json!({ "accountId": account["id"], "name": "Noa Berg", "email": "noa@proseware.example" }),
    );
    assert_eq!((user["id"].as_str(), user["role"].as_str()), (Some("usr_0025"), Some("member")));
    let items = json!([{ "productId": "prd_0005", "quantity": 3 }]);
    let order = demo.ok("billing:orders_create", json!({ "userId": user["id"], "items": items }));
    assert_eq!(order["accountId"], account["id"]);
    assert_eq!(order["totalCents"], 3 * 12_900);
    assert_eq!(demo.ok("billing:products_get", json!({ "id": "prd_0005" }))["stock"], 31);

    let invoice = demo.ok("billing:invoices_create", json!({ "orderId": order["id"] }));
    assert_eq!((invoice["status"].as_str(), invoice["dueAt"].as_str()), (Some("draft"), Some("2026-04-30")));
    demo.ok("billing:invoices_send", json!({ "id": invoice["id"] }));
    let paid = demo.ok("billing:invoices_pay", json!({ "id": invoice["id"] }));
    assert_eq!(paid["paidAt"], gatewright_demo::TODAY);
    assert_eq!(demo.ok("billing:orders_get", json!({ "id": order["id"] }))["status"], "paid");

    let ticket = demo.ok(
        "support:tickets_create",
        json!({ "requesterId": user["id"], "subject": "Hello", "body": "Where is my order?" }),
    );
    assert_eq!(ticket["accountId"], account["id"]);
}

#[test]
fn cancelling_an_order_restocks_it_and_voids_its_unpaid_invoice() {
    let demo = Demo::new();
    let order = demo.ok("billing:orders_get", json!({ "id": "ord_0001" }));
    let item = &order["items"][0];
    let product = json!({ "id": item["productId"] });
    let before = demo.ok("billing:products_get", product.clone())["stock"].as_u64().unwrap();
    demo.ok("billing:orders_cancel", json!({ "id": "ord_0001" }));
    let after = demo.ok("billing:products_get", product)["stock"].as_u64().unwrap();
    assert_eq!(after, before + item["quantity"].as_u64().unwrap());
    assert_eq!(demo.ok("billing:invoices_get", json!({ "id": "inv_0001" }))["status"], "void");
}

#[test]
fn ids_of_deleted_users_are_not_used_again() {
    let demo = Demo::new();
    let add = |email: &str| {
        demo.ok("crm:users_create", json!({ "accountId": "acc_0001", "name": "N", "email": email }))["id"]
            .clone()
    };
    let first = add("n1@northwind.example");
    demo.ok("crm:users_delete", json!({ "id": first }));
    assert_eq!(add("n2@northwind.example"), "usr_0026");
}

#[test]
fn revenue_adds_up_by_month_and_by_account() {
    let demo = Demo::new();
    let report = demo.ok("billing:revenue_report", json!({}));
    let sum = |rows: &Value| -> u64 {
        rows.as_array().unwrap().iter().map(|row| row["totalCents"].as_u64().unwrap()).sum()
    };
    let paid: u64 = demo
        .all("billing:invoices_list", json!({ "status": "paid" }))
        .iter()
        .map(|row| row["amountCents"].as_u64().unwrap())
        .sum();
    assert!(paid > 0);
    assert_eq!(
        (report["totalCents"].as_u64(), sum(&report["months"]), sum(&report["accounts"])),
        (Some(paid), paid, paid)
    );
}
