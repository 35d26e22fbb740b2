//! A transport between a client and a server in one process: messages move, nothing is serialized.

use std::{borrow::Cow, future::Future};

use rmcp::{
    RoleClient, RoleServer,
    service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::mpsc;

/// One end of an in-memory connection.
#[derive(Debug)]
pub struct MemoryTransport<R: ServiceRole> {
    sender: Option<mpsc::Sender<TxJsonRpcMessage<R>>>,
    receiver: mpsc::Receiver<RxJsonRpcMessage<R>>,
}

/// The other end is gone.
#[derive(Debug, thiserror::Error)]
#[error("the other end of the in-memory connection is closed")]
pub struct Closed;

/// A connected pair: the client's end and the server's.
pub fn memory_transport() -> (MemoryTransport<RoleClient>, MemoryTransport<RoleServer>) {
    let (to_server, from_client) = mpsc::channel(64);
    let (to_client, from_server) = mpsc::channel(64);
    (
        MemoryTransport { sender: Some(to_server), receiver: from_server },
        MemoryTransport { sender: Some(to_client), receiver: from_client },
    )
}

impl<R: ServiceRole> Transport<R> for MemoryTransport<R> {
    type Error = Closed;

    fn name() -> Cow<'static, str> {
        "memory".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<R>,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let sender = self.sender.clone();
        async move { sender.ok_or(Closed)?.send(item).await.map_err(|_| Closed) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<R>> {
        self.receiver.recv().await
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.sender = None;
        self.receiver.close();
        Ok(())
    }
}
