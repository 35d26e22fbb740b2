//! Notes of an answer on apps that are not there: unknown ids, and apps that start, are down or wait for a sign-in.

use gatewright_core::{Unavailable, View, nearest_name};
use serde_json::{Value, json};

use crate::settings::Settings;

/// Apps named in one answer.
const MOST: usize = 10;
/// Bytes of an unknown id that are repeated.
const LONGEST: usize = 64;

/// Adds `unavailable` and `unknownApps` to the answer, if there are any among `asked`, or among all apps. Beside results of other apps, the code says
/// enough, unless the caller can do something.
pub(super) fn note(body: &mut Value, view: &View, asked: Option<&[String]>, settings: &Settings) {
    let concerns = |id: &str| asked.is_none_or(|asked| asked.iter().any(|one| one == id));
    let has_results = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let unavailable = view.unavailable();
    let unavailable = unavailable.iter().filter(|app| concerns(&app.id)).take(MOST).map(|app| {
        let mut note = json!({"appId": *app.id, "code": app.code()});
        if asked.is_some() || !has_results || matches!(app.why, Unavailable::SignIn(_)) {
            note["message"] = settings.sanitizer.text(&app.to_string()).into();
        }
        note
    });
    let unavailable: Vec<Value> = unavailable.collect();
    if !unavailable.is_empty() {
        body["unavailable"] = unavailable.into();
    }
    let is_unknown = |id: &&String| !view.app_ids().any(|known| **known == ***id);
    let unknown = asked.unwrap_or_default().iter().filter(is_unknown).take(MOST).map(|id| {
        let mut unknown = json!({"appId": shown(id)});
        if let Some(nearest) = nearest_name(id, view.app_ids().map(|known| &**known)) {
            unknown["nearest"] = nearest.into();
        }
        unknown
    });
    let unknown: Vec<Value> = unknown.collect();
    if !unknown.is_empty() {
        body["unknownApps"] = unknown.into();
    }
}

/// The beginning of an id.
fn shown(id: &str) -> &str {
    &id[..id.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_is_repeated_wherever_its_characters_end() {
        assert_eq!(shown("crm"), "crm");
        let id = format!("{}{}", "x".repeat(LONGEST - 1), "é".repeat(1_000_000));
        assert_eq!(shown(&id), "x".repeat(LONGEST - 1));
    }
}
