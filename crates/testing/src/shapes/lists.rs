//! Lists across pages: unique names, and cursors that lead to the end.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{rule::Rule, violation::Violation};
use crate::{base::text::shorten, protocol::RpcRequest};

/// Listings that are remembered until their next page.
const MOST_OPEN: usize = 64;

/// Listings that have a next page, by method and its cursor.
#[derive(Debug, Default)]
pub(super) struct Lists {
    open: HashMap<(String, String), Listing>,
}

/// One listing, from its first page on.
#[derive(Debug, Default)]
struct Listing {
    names: HashSet<String>,
    cursors: HashSet<String>,
}

/// The members of an item that are unique, by method.
fn unique(method: &str) -> Option<(&'static str, &'static str)> {
    Some(match method {
        "tools/list" => ("tools", "name"),
        "prompts/list" => ("prompts", "name"),
        "resources/list" => ("resources", "uri"),
        "resources/templates/list" => ("resourceTemplates", "uriTemplate"),
        _ => return None,
    })
}

impl Lists {
    /// Checks a page.
    pub(super) fn check(&mut self, request: &RpcRequest, result: &Value, found: &mut Vec<Violation>) {
        let method = request.method.as_str();
        let Some((items, key)) = unique(method) else { return };
        let mut listing = match request.params["cursor"].as_str() {
            None => Listing::default(),
            Some(cursor) => match self.open.remove(&(method.to_owned(), cursor.to_owned())) {
                Some(listing) => listing,
                // A cursor that the client did not get from a page before.
                None => return,
            },
        };
        for (at, item) in result[items].as_array().into_iter().flatten().enumerate() {
            if let Some(name) = item[key].as_str()
                && !listing.names.insert(name.to_owned())
            {
                let problem = format!("there is another one with this `{key}`");
                let place = format!("/{items}/{at}");
                found.push(Violation::new(Rule::Duplicates, method, place, problem).named(Some(name)));
            }
        }
        let Some(next) = result["nextCursor"].as_str() else { return };
        if !listing.cursors.insert(next.to_owned()) {
            let problem = format!(
                "the cursor {:?} was given on an earlier page: the list has no end",
                shorten(next, 80)
            );
            found.push(Violation::new(Rule::Cursors, method, "/nextCursor", problem));
            return;
        }
        if self.open.len() >= MOST_OPEN {
            self.open.clear();
        }
        self.open.insert((method.to_owned(), next.to_owned()), listing);
    }
}
