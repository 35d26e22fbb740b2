//! Tools for the catalogue of products.

use rmcp::{
    handler::server::wrapper::{Json, Parameters},
    tool, tool_router,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    answer::{Failure, Page, check_text, contains_words, default_limit, hints, matches, page},
    app::App,
    dataset::{Category, Product, find_mut},
};

/// Highest price, in cents.
const MOST_CENTS: u64 = 100_000_000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListProducts {
    /// Only products of this kind
    category: Option<Category>,
    /// Only products with, or without, pieces left
    in_stock: Option<bool>,
    /// Most rows to return
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// nextCursor of the page before; leave out for the first page
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GetProduct {
    /// Id of the product, such as prd_0001
    #[schemars(example = &"prd_0001")]
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SearchProducts {
    /// Words in the name or category
    #[schemars(length(min = 1, max = 2000), example = &"scanner")]
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
struct SetPrice {
    /// Id of the product, such as prd_0005
    #[schemars(example = &"prd_0005")]
    id: String,
    /// New price of one, in cents
    #[schemars(range(min = 0, max = MOST_CENTS), example = 13_900)]
    price_cents: u64,
}

#[tool_router(router = products, vis = "pub(crate)")]
impl App {
    #[tool(
        title = "List products",
        description = "List the products in the catalogue, page by page, with price and stock. Can be narrowed to a category or to products out of stock.",
        annotations(
            title = "List products",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[])
    )]
    fn products_list(
        &self,
        Parameters(input): Parameters<ListProducts>,
    ) -> Result<Json<Page<Product>>, Failure> {
        self.with(|state| {
            page(&state.products, input.limit, input.cursor.as_deref(), |product| {
                matches(input.category.as_ref(), &product.category)
                    && input.in_stock.is_none_or(|wanted| wanted == (product.stock > 0))
            })
        })
    }

    #[tool(
        title = "Get a product",
        description = "Get one product by id: name, category, price and how many pieces are left in stock.",
        annotations(
            title = "Get a product",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[])
    )]
    fn products_get(&self, Parameters(input): Parameters<GetProduct>) -> Result<Json<Product>, Failure> {
        self.with(|state| state.product(&input.id).cloned())
    }

    #[tool(
        title = "Search products",
        description = "Search products by part of their name or category. Finds an item of the catalogue when the id is not known.",
        annotations(
            title = "Search products",
            read_only_hint = true,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:read", &[])
    )]
    fn products_search(
        &self,
        Parameters(input): Parameters<SearchProducts>,
    ) -> Result<Json<Page<Product>>, Failure> {
        self.with(|state| {
            check_text("query", &input.query)?;
            page(&state.products, input.limit, input.cursor.as_deref(), |product| {
                contains_words(&input.query, &[&product.name, &product.category])
            })
        })
    }

    #[tool(
        title = "Set the price of a product",
        description = "Set the price of a product, in cents. Orders already placed keep the price they had.",
        annotations(
            title = "Set the price of a product",
            read_only_hint = false,
            destructive_hint = false,
            idempotent_hint = true,
            open_world_hint = false
        ),
        meta = hints("billing:write", &[])
    )]
    fn products_set_price(&self, Parameters(input): Parameters<SetPrice>) -> Result<Json<Product>, Failure> {
        self.with(|state| {
            if input.price_cents > MOST_CENTS {
                return Failure::invalid(format!("'priceCents' must be {MOST_CENTS} or less."));
            }
            let product = find_mut(&mut state.products, "product", &input.id)?;
            product.price_cents = input.price_cents;
            Ok(product.clone())
        })
    }
}
