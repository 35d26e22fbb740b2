//! Consoles of several instances.

use std::{sync::Arc, time::Duration};

use gatewright_console::{ConsoleOptions, SharedConsole};
use gatewright_core::{MemoryRecords, SealKey, SharedRecords};

use crate::support::{Site, execution, site_with};

async fn instance(records: &Arc<dyn SharedRecords>, key: &SealKey, name: &str) -> Site {
    let shared = SharedConsole { records: records.clone(), key: key.clone(), instance: name.to_owned() };
    site_with(ConsoleOptions { shared: Some(shared), ..ConsoleOptions::default() }).await
}

/// Reads the page until it has the text.
async fn until(site: &Site, path: &str, expected: &str) -> String {
    let read = async {
        loop {
            let text = site.get(path).await.text;
            if text.contains(expected) {
                return text;
            }
            tokio::time::advance(Duration::from_secs(2)).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(600), read).await.expect(expected)
}

#[tokio::test]
async fn each_console_shows_all_instances_and_their_calls() {
    let (records, key) = (Arc::<MemoryRecords>::default() as Arc<dyn SharedRecords>, SealKey::random());
    let first = instance(&records, &key, "first").await;
    let second = instance(&records, &key, "second").await;
    let stranger = instance(&records, &SealKey::random(), "stranger").await;
    tokio::time::pause();
    second.history.record(&execution("crm:on_second"));
    let overview = until(&first, "/console", "second").await;
    assert!(overview.contains("Instances</h2>") && overview.contains("this one"), "{overview}");
    let all = until(&first, "/console/calls?instance=all", "crm:on_second").await;
    assert!(all.contains("<span class=\"tag\">second</span>"), "{all}");
    let own = first.get("/console/calls").await.text;
    assert!(!own.contains("crm:on_second"), "{own}");
    let none = first.get("/console/calls?instance=all&tool=nothing").await.text;
    assert!(none.contains("Nothing fits."), "{none}");
    let strange = stranger.get("/console/calls?instance=all").await.text;
    assert!(!strange.contains("crm:on_second"), "another key opens nothing");
}
