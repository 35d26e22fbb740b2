//! Threads that drive the HTTP connections to other servers.

use std::{
    collections::HashMap,
    io,
    pin::pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

/// A thread that drives the connections to one server, or to servers of one kind.
///
/// A connection is a task that reads what its server sends, for as long as there is something to read: a server that sends interim
/// responses (`1xx`, RFC 9110 §15.2) without end keeps its thread from everything else, timers included. Here that is a thread on which no
/// request of a client waits. It ends with the last clone, and its connections with it.
#[derive(Debug, Clone)]
pub struct ConnectionThread(Arc<Thread>);

#[derive(Debug)]
struct Thread {
    handle: Handle,
    /// Dropped with the last clone, which ends the thread.
    _end: oneshot::Sender<()>,
}

/// The threads of apps, by their ids.
static OF_APPS: Mutex<Option<HashMap<Arc<str>, Weak<Thread>>>> = Mutex::new(None);

impl ConnectionThread {
    /// Starts a thread.
    ///
    /// # Errors
    /// The system has no room for one more.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("connections".to_owned()).spawn(move || {
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        })?;
        Ok(Self(Arc::new(Thread { handle, _end: end })))
    }

    /// The thread of the app `id`, which all of its connections share.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn of_app(id: &Arc<str>) -> io::Result<Self> {
        let mut threads = OF_APPS.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = threads.get_or_insert_default();
        threads.retain(|_, thread| thread.strong_count() > 0);
        if let Some(thread) = threads.get(id).and_then(Weak::upgrade) {
            return Ok(Self(thread));
        }
        let started = Self::start()?;
        threads.insert(id.clone(), Arc::downgrade(&started.0));
        Ok(started)
    }

    /// Polls `request` where it is awaited, and has the thread drive all connections that it opens. Timers that it starts belong to the
    /// thread, too: those that hold for a hostile server start before, or around this.
    pub async fn drive<F: Future>(&self, request: F) -> F::Output {
        let mut request = pin!(request);
        std::future::poll_fn(|context| {
            let _entered = self.0.handle.enter();
            request.as_mut().poll(context)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::async_yields_async, reason = "the tasks go on after the request that began them")]

    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_connection_that_never_yields_keeps_no_thread_but_its_own() {
        let thread = ConnectionThread::start().unwrap();
        let (release, released) = mpsc::channel::<()>();
        let (began, begun) = oneshot::channel();
        // As a connection whose server always has more to say.
        let stuck = thread.drive(async {
            tokio::spawn(async move {
                let _ = began.send(thread::current().id());
                released.recv()
            })
        });
        let stuck = stuck.await;
        assert_ne!(begun.await.unwrap(), thread::current().id());
        // The runtime of the caller has no other thread than this one, and goes on.
        tokio::spawn(async {}).await.unwrap();
        release.send(()).unwrap();
        stuck.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn connections_of_an_app_share_a_thread_that_ends_with_the_last_of_them() {
        let (a, b): (Arc<str>, Arc<str>) = ("connection-thread-a".into(), "connection-thread-b".into());
        let first = ConnectionThread::of_app(&a).unwrap();
        let second = ConnectionThread::of_app(&a).unwrap();
        assert!(Arc::ptr_eq(&first.0, &second.0));
        assert!(!Arc::ptr_eq(&first.0, &ConnectionThread::of_app(&b).unwrap().0));
        drop(first);
        let (connection, dropped) = oneshot::channel::<()>();
        second
            .drive(async {
                tokio::spawn(async move {
                    let _open = connection;
                    std::future::pending::<()>().await;
                })
            })
            .await;
        drop(second);
        assert!(dropped.await.is_err(), "the connection is closed");
    }
}
