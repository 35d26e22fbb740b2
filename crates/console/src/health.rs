//! Health of the apps: the current state of each, and its last error.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use gatewright_core::{AppHealth, Registry};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// Interval between two polls of the health. Changes of the catalog are polled at once.
const POLL: Duration = Duration::from_secs(1);

/// Health of one app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppStatus {
    pub(crate) health: AppHealth,
    pub(crate) since: SystemTime,
    pub(crate) last_error: Option<(SystemTime, Arc<str>)>,
}

/// Follows the health of all apps.
#[derive(Debug)]
pub(crate) struct HealthWatch {
    known: Arc<Mutex<BTreeMap<Arc<str>, AppStatus>>>,
    changed: watch::Receiver<u64>,
    _task: AbortOnDropHandle<()>,
}

impl HealthWatch {
    /// Reads the health now, and then regularly until `stop`.
    pub(crate) fn start(registry: Arc<Registry>, stop: CancellationToken) -> Self {
        let known = Arc::<Mutex<BTreeMap<_, _>>>::default();
        update(&registry, &known);
        let (notify, changed) = watch::channel(0);
        let task = tokio::spawn(follow(registry, known.clone(), notify, stop));
        Self { known, changed, _task: AbortOnDropHandle::new(task) }
    }

    /// The health of `app`.
    pub(crate) fn of(&self, app: &str) -> Option<AppStatus> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(app).cloned()
    }

    /// A receiver that is notified when the health of an app or the catalog changes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }
}

async fn follow(
    registry: Arc<Registry>,
    known: Arc<Mutex<BTreeMap<Arc<str>, AppStatus>>>,
    notify: watch::Sender<u64>,
    stop: CancellationToken,
) {
    let mut changes = registry.changes();
    loop {
        let catalog = tokio::select! {
            () = stop.cancelled() => return,
            _ = changes.recv() => true,
            () = tokio::time::sleep(POLL) => false,
        };
        if update(&registry, &known) || catalog {
            notify.send_modify(|count| *count += 1);
        }
    }
}

/// Updates the known health. Returns true if anything changed.
fn update(registry: &Registry, known: &Mutex<BTreeMap<Arc<str>, AppStatus>>) -> bool {
    let now = SystemTime::now();
    let apps = registry.operator_snapshot();
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    let before = known.len();
    known.retain(|id, _| apps.app(id).is_some());
    let mut changed = known.len() != before;
    for entry in &apps.apps {
        let health = entry.app.health();
        let error = |health: &AppHealth| match health {
            AppHealth::Down(why) => Some((now, Arc::from(why.in_full()))),
            AppHealth::Up | AppHealth::Starting => None,
        };
        match known.get_mut(&entry.id) {
            Some(same) if same.health == health => {}
            Some(other) => {
                other.last_error = error(&health).or(other.last_error.take());
                other.health = health;
                other.since = now;
                changed = true;
            }
            None => {
                let last_error = error(&health);
                known.insert(entry.id.clone(), AppStatus { health, since: now, last_error });
                changed = true;
            }
        }
    }
    changed
}
