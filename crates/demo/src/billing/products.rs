//! Tools for the catalogue of products.

use serde_json::json;

use crate::dataset::find_mut;
use crate::schema::{CATEGORIES, by_id, choice, id, list_input, object, page_of, product, text};
use crate::tool::{Effect, Spec, page, row};

pub(super) fn tools() -> Vec<Spec> {
    vec![
        Spec {
            name: "products_list",
            title: "List products",
            effect: Effect::Read,
            description: "List the products in the catalogue, page by page, with price and stock. Can be narrowed to a category or to products out of stock.",
            input: list_input(
                json!({
                    "category": choice("Only products of this kind", &CATEGORIES),
                    "inStock": { "type": "boolean", "description": "Only products with, or without, pieces left" },
                }),
                &[],
            ),
            output: page_of(product()),
            examples: &[],
            run: |state, args| {
                page(&state.products, args, |product| {
                    args.matches("category", &product.category)
                        && args.flag("inStock").is_none_or(|wanted| wanted == (product.stock > 0))
                })
            },
        },
        Spec {
            name: "products_get",
            title: "Get a product",
            effect: Effect::Read,
            description: "Get one product by id: name, category, price and how many pieces are left in stock.",
            input: by_id("product", "prd_0001"),
            output: product(),
            examples: &[],
            run: |state, args| state.product(args.text("id")).map(row),
        },
        Spec {
            name: "products_search",
            title: "Search products",
            effect: Effect::Read,
            description: "Search products by part of their name or category. Finds an item of the catalogue when the id is not known.",
            input: list_input(
                json!({ "query": text("Words in the name or category", "scanner") }),
                &["query"],
            ),
            output: page_of(product()),
            examples: &[],
            run: |state, args| {
                page(&state.products, args, |product| args.finds(&[&product.name, &product.category]))
            },
        },
        Spec {
            name: "products_set_price",
            title: "Set the price of a product",
            effect: Effect::Update,
            description: "Set the price of a product, in cents. Orders already placed keep the price they had.",
            input: object(
                json!({
                    "id": id("product", "prd_0005"),
                    "priceCents": {
                        "type": "integer", "minimum": 0, "maximum": 100_000_000,
                        "description": "New price of one, in cents", "examples": [13_900],
                    },
                }),
                &["id", "priceCents"],
            ),
            output: product(),
            examples: &[],
            run: |state, args| {
                let product = find_mut(&mut state.products, "product", args.text("id"))?;
                product.price_cents = args.number("priceCents").unwrap_or(product.price_cents);
                Ok(row(product))
            },
        },
    ]
}
