//! Turns at the standard input and output of a shared server, which are named pipes: one process has them at a time.
//!
//! Whoever gives its turn back leaves the state of the connection in a file. Without it the holder before was killed, or the connection
//! broke; nobody knows what is left in the pipes then, and the server has to be replaced.

use std::{
    fs::File,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::fs::OFlags;
use serde_json::{Value, json};
use tokio::{net::unix::pipe, sync::mpsc, task::AbortHandle};

use super::lease;
use crate::{
    base::{lock, text::random_text},
    client::{Connector, Handshake, Incoming, LineTransport, Outgoing, SharedConnection, Transport},
    protocol::ClientError,
};

const INPUT: &str = "input";
const OUTPUT: &str = "output";
const LOCK: &str = "turn";
const HANDSHAKE: &str = "handshake.json";

/// Time between looks at the lock.
const INTERVAL: Duration = Duration::from_millis(5);
/// Time for the server to answer the ping that a turn begins with.
const SETTLE: Duration = Duration::from_secs(30);

/// The pipes of a server, in its directory.
pub(super) struct Pipes {
    pub(super) input: PathBuf,
    pub(super) output: PathBuf,
}

impl Pipes {
    pub(super) fn of(dir: &Path) -> Self {
        Self { input: dir.join(INPUT), output: dir.join(OUTPUT) }
    }

    /// Makes them, and the files of turns.
    pub(super) async fn make(dir: &Path) -> std::io::Result<Self> {
        let pipes = Self::of(dir);
        lease::make_pipe(&pipes.input).await?;
        lease::make_pipe(&pipes.output).await?;
        File::create(dir.join(LOCK))?;
        write(dir, &Handshake::default())?;
        Ok(pipes)
    }

    /// True if a server reads its standard input.
    pub(super) fn are_open(&self) -> bool {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        use std::os::unix::fs::OpenOptionsExt as _;
        File::options().write(true).custom_flags(flags).open(&self.input).is_ok()
    }
}

/// The turn of this process. It is given back when it is dropped.
pub(super) struct Turn {
    dir: PathBuf,
    connection: Arc<SharedConnection>,
    reader: Arc<Mutex<Option<AbortHandle>>>,
    /// Held until everything else is done.
    _lock: File,
}

impl Turn {
    /// Waits until no other process has the turn. `None` if the server has to be replaced.
    pub(super) async fn wait(dir: &Path) -> std::io::Result<Option<Self>> {
        let file = match File::options().write(true).open(dir.join(LOCK)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(INTERVAL).await,
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            }
        }
        let path = dir.join(HANDSHAKE);
        let before = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        let Some(before) = before else { return Ok(None) };
        std::fs::remove_file(path)?;
        let reader = Arc::default();
        let connector = connector(dir, Arc::clone(&reader), &before);
        let connection = SharedConnection::continued(connector, before);
        Ok(Some(Self { dir: dir.to_owned(), connection, reader, _lock: file }))
    }

    /// Connects clients, which share the connection.
    pub(super) fn connector(&self) -> Connector {
        self.connection.connector()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // First, since the connection ends with its reader.
        let handshake = self.connection.end();
        if let Some(reader) = lock(&self.reader).take() {
            reader.abort();
        }
        if let Some(handshake) = handshake {
            let _ = write(&self.dir, &handshake);
        }
    }
}

fn write(dir: &Path, handshake: &Handshake) -> std::io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    serde_json::to_writer(&mut file, handshake)?;
    file.persist(dir.join(HANDSHAKE)).map_err(|error| error.error)?;
    Ok(())
}

/// Opens the pipes. `reader` gets the handle of the task that reads.
fn connector(dir: &Path, reader: Arc<Mutex<Option<AbortHandle>>>, before: &Handshake) -> Connector {
    let (pipes, is_begun) = (Arc::new(Pipes::of(dir)), before.is_begun());
    Arc::new(move |sender, _| {
        let (pipes, reader) = (pipes.clone(), reader.clone());
        Box::pin(async move {
            let ended = |error| ClientError::Closed(format!("the shared server has ended: {error}"));
            let input = pipe::OpenOptions::new().open_sender(&pipes.input).map_err(ended)?;
            let output = pipe::OpenOptions::new().open_receiver(&pipes.output).map_err(ended)?;
            let (from_server, mut incoming) = mpsc::unbounded_channel();
            let lines = LineTransport::new(output, input, from_server);
            *lock(&reader) = Some(lines.reader());
            if is_begun {
                skip_rest(&lines, &mut incoming).await?;
            }
            tokio::spawn(async move {
                while let Some(one) = incoming.recv().await {
                    if sender.send(one).is_err() {
                        break;
                    }
                }
            });
            Ok(Arc::new(lines) as Arc<dyn Transport>)
        })
    })
}

/// Skips what the server had still to say to the process before: everything until the answer to a ping.
async fn skip_rest(
    lines: &LineTransport,
    incoming: &mut mpsc::UnboundedReceiver<Incoming>,
) -> Result<(), ClientError> {
    let id = Value::from(format!("turn {}", random_text()));
    lines.send(Outgoing::message(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))).await?;
    let answered = async {
        loop {
            match incoming.recv().await {
                Some(Incoming::Message(message)) if message["id"] == id => return Ok(()),
                Some(Incoming::Closed(reason)) => return Err(ClientError::Closed(reason)),
                Some(_) => {}
                None => return Err(ClientError::Closed("the shared server has ended".into())),
            }
        }
    };
    tokio::time::timeout(SETTLE, answered).await.unwrap_or_else(|_| {
        let hint = "; the test before may have left it busy".to_owned();
        Err(ClientError::TimedOut { method: "ping".into(), after: SETTLE, hint })
    })
}
