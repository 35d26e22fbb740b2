//! TLS at the listener: the certificate that is presented, and how it is read again when its files change.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use gatewright_core::{InvalidField, read_file};

/// Longest certificate or key file, in bytes.
const MOST_BYTES: u64 = 1024 * 1024;

/// The `http.tls` section: HTTPS without a proxy in front.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TlsConfig {
    /// PEM file with the certificate of the server, followed by those of the authorities between it and the root.
    #[schemars(with = "String")]
    pub cert: PathBuf,
    /// PEM file with the private key of the certificate (PKCS#8, PKCS#1 or SEC1), not encrypted.
    #[schemars(with = "String")]
    pub key: PathBuf,
}

impl TlsConfig {
    /// Reads both files.
    fn load(&self) -> Result<Arc<ServerConfig>, InvalidField> {
        let wrong = |field, problem: String| InvalidField::new(field, problem);
        let read = |field, path: &Path| {
            read_file(path, MOST_BYTES)
                .map_err(|error| wrong(field, format!("{} cannot be read: {error}", path.display())))
        };
        let (cert, key) = (read("tls.cert", &self.cert)?, read("tls.key", &self.key)?);
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&cert)
            .collect::<Result<_, _>>()
            .ok()
            .filter(|chain: &Vec<_>| !chain.is_empty())
            .ok_or_else(|| {
                wrong("tls.cert", format!("{} holds no certificate in PEM form", self.cert.display()))
            })?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| {
            let path = self.key.display();
            wrong("tls.key", format!("{path} holds no private key in PEM form that is not encrypted"))
        })?;
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong("tls.cert", error.to_string()))?;
        let mut config =
            builder.with_no_client_auth().with_single_cert(chain, key).map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    let (key, cert) = (self.key.display(), self.cert.display());
                    wrong("tls.key", format!("{key} is not the key of the certificate in {cert}"))
                }
                rustls::Error::InvalidCertificate(_) => {
                    wrong("tls.cert", format!("{} cannot be used: {error}", self.cert.display()))
                }
                other => wrong("tls.key", format!("{} cannot be used: {other}", self.key.display())),
            })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// The certificate of a listener. Connections that are open keep the one they began with.
#[derive(Clone)]
pub struct Certificate(Arc<CertificateFiles>);

struct CertificateFiles {
    files: TlsConfig,
    current: RwLock<Arc<ServerConfig>>,
}

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Certificate").field(&self.0.files).finish()
    }
}

impl Certificate {
    pub(crate) fn open(files: &TlsConfig) -> Result<Self, InvalidField> {
        let current = RwLock::new(files.load()?);
        Ok(Self(Arc::new(CertificateFiles { files: files.clone(), current })))
    }

    /// The two files it is read from.
    pub fn files(&self) -> [&Path; 2] {
        [&self.0.files.cert, &self.0.files.key]
    }

    /// Reads both files again, for connections from now on. Call it off the async threads.
    ///
    /// # Errors
    /// They cannot be used; then the pair before goes on.
    pub fn reload(&self) -> Result<(), InvalidField> {
        let new = self.0.files.load().map_err(|field| field.below("http"))?;
        *self.0.current.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub(crate) async fn accept(&self, socket: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let current = self.0.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        TlsAcceptor::from(current).accept(socket).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(folder: &Path, name: &str) -> TlsConfig {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        let files =
            TlsConfig { cert: folder.join(format!("{name}.pem")), key: folder.join(format!("{name}.key")) };
        std::fs::write(&files.cert, made.cert.pem()).unwrap();
        std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
        files
    }

    fn problem(files: &TlsConfig) -> (std::borrow::Cow<'static, str>, String) {
        let InvalidField { path, problem } = files.load().unwrap_err();
        (path, problem)
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (pair(folder.path(), "one"), pair(folder.path(), "other"));
        assert!(one.load().is_ok());
        let missing = TlsConfig { cert: folder.path().join("none.pem"), ..one.clone() };
        let (field, text) = problem(&missing);
        assert!(field == "tls.cert" && text.contains("none.pem cannot be read"), "{field} {text}");
        let (field, text) = problem(&TlsConfig { key: other.key.clone(), ..one.clone() });
        assert!(field == "tls.key" && text.contains("is not the key of the certificate"), "{field} {text}");
        let (field, text) = problem(&TlsConfig { cert: one.key.clone(), ..one.clone() });
        assert!(field == "tls.cert" && text.contains("no certificate"), "{field} {text}");
        let (field, text) = problem(&TlsConfig { key: one.cert.clone(), ..one.clone() });
        assert!(field == "tls.key" && text.contains("no private key"), "{field} {text}");
        std::fs::write(&other.cert, vec![b'x'; 2 << 20]).unwrap();
        assert!(problem(&other).1.contains("longer than 1048576 bytes"));
    }

    #[test]
    fn a_bad_pair_at_reload_leaves_the_old_one_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let files = pair(folder.path(), "one");
        let certificate = Certificate::open(&files).unwrap();
        let current = || certificate.0.current.read().unwrap().clone();
        let before = current();
        std::fs::write(&files.key, "half a file").unwrap();
        assert!(certificate.reload().is_err());
        assert!(Arc::ptr_eq(&before, &current()));
        pair(folder.path(), "one");
        certificate.reload().unwrap();
        assert!(!Arc::ptr_eq(&before, &current()));
    }
}
