//! How the apps fare: the last error of each, kept after it is over.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use gatewright_core::{AppHealth, Registry};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// How often health is read besides every change of the catalog.
const EVERY: Duration = Duration::from_secs(1);

/// What is known of one app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) health: AppHealth,
    pub(crate) since: SystemTime,
    pub(crate) last_error: Option<(SystemTime, Arc<str>)>,
}

/// Follows the health of all apps.
#[derive(Debug)]
pub(crate) struct HealthWatch {
    known: Arc<Mutex<BTreeMap<Arc<str>, Known>>>,
    changed: watch::Receiver<u64>,
    _task: AbortOnDropHandle<()>,
}

impl HealthWatch {
    /// Reads now, and from now on until `stop`.
    pub(crate) fn start(registry: Arc<Registry>, stop: CancellationToken) -> Self {
        let known = Arc::<Mutex<BTreeMap<_, _>>>::default();
        look(&registry, &known);
        let (tell, changed) = watch::channel(0);
        let task = tokio::spawn(follow(registry, known.clone(), tell, stop));
        Self { known, changed, _task: AbortOnDropHandle::new(task) }
    }

    /// What is known of `app`.
    pub(crate) fn of(&self, app: &str) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(app).cloned()
    }

    /// Hears when an app's health or the catalog is new.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }
}

async fn follow(
    registry: Arc<Registry>,
    known: Arc<Mutex<BTreeMap<Arc<str>, Known>>>,
    tell: watch::Sender<u64>,
    stop: CancellationToken,
) {
    let mut changes = registry.changes();
    loop {
        let catalog = tokio::select! {
            () = stop.cancelled() => return,
            _ = changes.recv() => true,
            () = tokio::time::sleep(EVERY) => false,
        };
        if look(&registry, &known) || catalog {
            tell.send_modify(|count| *count += 1);
        }
    }
}

/// Notes what is new; whether anything is.
fn look(registry: &Registry, known: &Mutex<BTreeMap<Arc<str>, Known>>) -> bool {
    let now = SystemTime::now();
    let apps = registry.operator_snapshot();
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let before = known.len();
    known.retain(|id, _| apps.app(id).is_some());
    let mut news = known.len() != before;
    for entry in &apps.apps {
        let health = entry.app.health();
        let error = |health: &AppHealth| match health {
            AppHealth::Down(why) => Some((now, Arc::from(why.as_str()))),
            AppHealth::Up | AppHealth::Starting => None,
        };
        match known.get_mut(&entry.id) {
            Some(same) if same.health == health => {}
            Some(other) => {
                other.last_error = error(&health).or(other.last_error.take());
                other.health = health;
                other.since = now;
                news = true;
            }
            None => {
                let last_error = error(&health);
                known.insert(entry.id.clone(), Known { health, since: now, last_error });
                news = true;
            }
        }
    }
    news
}
