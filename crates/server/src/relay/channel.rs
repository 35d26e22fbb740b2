//! The interface to what carries messages between instances. The server knows no Redis; whoever builds it brings one.

use bytes::Bytes;
use futures::{future::BoxFuture, stream::BoxStream};

/// Carries messages to other instances: at most once, in the order in which one sender sent them, without an answer.
pub trait PeerChannel: Send + Sync + 'static {
    /// Sends `message` to the instance `to`. Must end within a few seconds.
    fn send<'a>(&'a self, to: &'a str, message: &'a [u8]) -> BoxFuture<'a, Result<Delivery, NotDelivered>>;

    /// Listens for messages to the instance `own` until the stream is dropped; makes a lost connection again by itself.
    fn listen(&self, own: &str) -> BoxStream<'static, FromPeers>;
}

/// The fate of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It is on its way to an instance that lives, as far as is known.
    Sent,
    /// No such instance lives: nobody got the message.
    Nobody,
}

/// Why a message was not sent, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum NotDelivered {
    /// It was not sent.
    #[error("the message could not be sent")]
    Certainly(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It may have been sent.
    #[error("the message may not have been sent")]
    Perhaps(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// News for an instance that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromPeers {
    /// From now on messages are heard. Earlier ones may be lost.
    Listening,
    /// A message.
    Message(Bytes),
    /// The connection is lost: until the next [`FromPeers::Listening`] nothing is heard.
    Lost,
}
