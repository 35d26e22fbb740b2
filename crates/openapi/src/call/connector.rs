//! Connections to servers: addresses that the filter allows, TLS where the URL says so, and HTTP/2 where the server chooses it there.

use std::{
    error::Error,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
    vec,
};

use gatewright_core::AddressFilter;
use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector, dns::Name},
    rt::TokioIo,
};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower_service::Service;

use super::traffic::{Counted, Traffic};

const HTTP_2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

type Failure = Box<dyn Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

/// Resolves names to the addresses that the filter allows.
#[derive(Debug, Clone)]
struct Filtered(AddressFilter);

impl Service<Name> for Filtered {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let filter = self.0.clone();
        Box::pin(async move { Ok(filter.resolve(name.as_str()).await?.into_iter()) })
    }
}

/// The settings of TLS for an app: the roots of the system, or none where it has none. What does not ask an https host works all the same.
///
/// # Errors
/// The library supports no version of TLS.
pub(super) fn tls() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let with_roots = builder.clone().with_platform_verifier();
    let builder = with_roots.unwrap_or_else(|_| builder.with_root_certificates(RootCertStore::empty()));
    Ok(builder.with_no_client_auth())
}

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector<Filtered>,
    tls: TlsConnector,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(filter: AddressFilter, mut tls: ClientConfig, timeout: Duration) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(Filtered(filter));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(timeout));
        tls.alpn_protocols = vec![HTTP_2.to_vec(), HTTP_1_1.to_vec()];
        Self { tcp, tls: Arc::new(tls).into(), timeout }
    }

    async fn connect(mut self, server: Uri) -> Result<Stream, Failure> {
        let is_encrypted = server.scheme() == Some(&http::uri::Scheme::HTTPS);
        let name = server.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let stream = Counted::new(self.tcp.call(server).await?.into_inner());
        if !is_encrypted {
            return Ok(Stream::Plain(stream));
        }
        Ok(Stream::Encrypted(Box::new(self.tls.connect(ServerName::try_from(name)?, stream).await?)))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = Failure;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.tcp.poll_ready(context).map_err(Failure::from)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            match tokio::time::timeout(connector.timeout, connector.connect(server)).await {
                Ok(connected) => Ok(TokioIo::new(connected?)),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        })
    }
}

/// A connection.
pub(super) enum Stream {
    Plain(Counted),
    Encrypted(Box<TlsStream<Counted>>),
}

impl Stream {
    fn traffic(&self) -> &Traffic {
        match self {
            Self::Plain(stream) => stream.traffic(),
            Self::Encrypted(stream) => stream.get_ref().0.traffic(),
        }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.traffic().clone());
        match self {
            Self::Encrypted(stream) if stream.get_ref().1.alpn_protocol() == Some(HTTP_2) => {
                connected.negotiated_h2()
            }
            Self::Plain(_) | Self::Encrypted(_) => connected,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Encrypted(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Encrypted(stream) => stream.is_write_vectored(),
        }
    }
}
