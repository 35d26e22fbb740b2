//! Findings about names while the gateway serves.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use gatewright::Registry;
use gatewright_findings::Finding;
use tokio::sync::{broadcast::error::RecvError, watch};
use tokio_util::sync::CancellationToken;

use super::{redefined::FirstLook, unknown};
use crate::config::Config;

/// Findings about one place that the log names one by one; of more it has the number.
const MOST_LOGGED: usize = 5;
/// Findings that the log remembers: servers could bring up new ones without end.
const MOST_REMEMBERED: usize = 2_000;

/// Logs names of things that do not exist, each once for a configuration, and reports all findings, until `stop`.
pub async fn watch(
    registry: Arc<Registry>,
    mut configs: watch::Receiver<Arc<Config>>,
    report: impl Fn(&[Finding]),
    stop: CancellationToken,
) {
    let (mut rebuilt, mut changes) = (registry.rebuilds(), registry.changes());
    let (mut logged, mut first_look) = (HashSet::new(), FirstLook::default());
    loop {
        let config = configs.borrow_and_update().clone();
        let mut found = unknown(&config, Some(&registry));
        found.extend(first_look.compare(&registry));
        report(&found);
        log_new(&found, &mut logged);
        tokio::select! {
            changed = rebuilt.changed() => if changed.is_err() { return },
            // Lists of single callers.
            change = changes.recv() => if matches!(change, Err(RecvError::Closed)) { return },
            changed = configs.changed() => match changed {
                Ok(()) => {
                    logged.clear();
                    first_look = FirstLook::default();
                }
                Err(_) => return,
            },
            () = stop.cancelled() => return,
        }
    }
}

/// Logs the findings that were not logged before: those of one place together if there are many.
fn log_new(found: &[Finding], logged: &mut HashSet<String>) {
    let mut new: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for finding in found {
        let text = finding.to_string();
        if !logged.contains(&text) {
            new.entry(&finding.path).or_default().push(text);
        }
    }
    for (key, texts) in new {
        match texts.as_slice() {
            [first, rest @ ..] if texts.len() > MOST_LOGGED => tracing::warn!(
                key,
                "the configuration and the apps do not agree: {first} (and {} more findings of this kind; `gatewright check --live` lists them)",
                rest.len()
            ),
            all => all
                .iter()
                .for_each(|text| tracing::warn!(key, "the configuration and the apps do not agree: {text}")),
        }
        if logged.len() + texts.len() > MOST_REMEMBERED {
            logged.clear();
        }
        logged.extend(texts);
    }
}
