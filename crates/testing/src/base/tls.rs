//! A certificate authority for the lifetime of one test.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::{CryptoProvider, aws_lc_rs},
        pki_types::PrivateKeyDer,
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
};

use crate::base::lock;

const VALID: &str = "the parameters are valid";

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    /// The key of all leaf certificates.
    leaf_key: KeyPair,
    provider: Arc<CryptoProvider>,
    leaves: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    pub(crate) fn new() -> Arc<Self> {
        let key = KeyPair::generate().expect(VALID);
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "gatewright-testing CA of one test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let pem = params.self_signed(&key).expect(VALID).pem();
        Arc::new(Self {
            issuer: Issuer::new(params, key),
            pem,
            leaf_key: KeyPair::generate().expect(VALID),
            provider: Arc::new(aws_lc_rs::default_provider()),
            leaves: Mutex::default(),
        })
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    fn leaf(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        if let Some(leaf) = lock(&self.leaves).get(host) {
            return Some(leaf.clone());
        }
        let mut params = CertificateParams::new(vec![host.to_owned()]).ok()?;
        params.distinguished_name.push(DnType::CommonName, "gatewright-testing");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&self.leaf_key, &self.issuer).ok()?;
        let key = PrivateKeyDer::try_from(self.leaf_key.serialize_der()).ok()?;
        let key = self.provider.key_provider.load_private_key(key).ok()?;
        let leaf = Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key));
        lock(&self.leaves).insert(host.to_owned(), leaf.clone());
        Some(leaf)
    }

    /// Accepts TLS with a certificate for the host the client names (SNI), or for `fallback`.
    pub(crate) fn acceptor(self: &Arc<Self>, fallback: &str) -> TlsAcceptor {
        let resolver = Resolver { authority: self.clone(), fallback: fallback.to_owned() };
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

#[derive(Debug)]
struct Resolver {
    authority: Arc<Authority>,
    fallback: String,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.authority.leaf(hello.server_name().unwrap_or(&self.fallback))
    }
}
