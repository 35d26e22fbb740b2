//! [`ClientCertificate`]: the certificate that the gateway shows to an API, and its key.

use std::{fmt, sync::Arc};

use rustls::{
    ClientConfig,
    client::Resumption,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::{CertifiedKey, SingleCertAndKey},
};

/// TLS sessions that are kept to be resumed.
const SESSIONS: usize = 32;

/// A certificate with the key that belongs to it.
#[derive(Clone)]
pub(crate) struct ClientCertificate(Arc<SingleCertAndKey>);

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}

impl ClientCertificate {
    /// The certificate of a chain in PEM. None if there is none, or it does not belong to `key`.
    pub(crate) fn from_pem(chain: &str, key: &str) -> Option<Self> {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<_, _>>().ok()?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).ok()?;
        let certified = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()).ok()?;
        Some(Self(Arc::new(certified.into())))
    }

    /// The same settings, with this certificate. Sessions of others are not resumed.
    pub(crate) fn shown_by(&self, config: &ClientConfig) -> ClientConfig {
        let mut config = config.clone();
        config.client_auth_cert_resolver = self.0.clone();
        config.resumption = Resumption::in_memory_sessions(SESSIONS);
        config
    }
}
