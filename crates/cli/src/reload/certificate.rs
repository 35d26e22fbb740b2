//! Reloads the certificate of the listener on SIGHUP and when one of its files changes.

use gatewright::server::{Certificate, TlsConfig};
use tokio_util::sync::CancellationToken;

use super::{HANGUP, Reloader, watch::FileWatch};

/// The files of a certificate, with their state before the certificate was read.
pub struct CertificateFiles(Option<FileWatch>);

impl CertificateFiles {
    /// Records the state of the files. Without `watch` only SIGHUP reloads the certificate.
    pub fn note(config: Option<&TlsConfig>, watch: bool) -> Self {
        let files = config.filter(|_| watch);
        Self(files.map(|files| FileWatch::new([files.cert.clone(), files.key.clone()].into_iter())))
    }

    /// Reloads `certificate` when its files change, until `stop`.
    pub fn follow(self, certificate: Certificate, reloader: &mut Reloader, stop: CancellationToken) {
        let asked = certificate.clone();
        reloader.on_hangup(move || {
            let certificate = asked.clone();
            tokio::task::spawn_blocking(move || reload(&certificate, HANGUP));
        });
        let Some(mut files) = self.0 else { return };
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            loop {
                files.changed().await;
                files.record().await;
                let certificate = certificate.clone();
                let _ = tokio::task::spawn_blocking(move || reload(&certificate, "a changed file")).await;
            }
        }));
    }
}

fn reload(certificate: &Certificate, why: &str) {
    match certificate.reload() {
        Ok(()) => tracing::info!("the certificate was reloaded after {why}"),
        Err(error) => {
            tracing::error!(
                "the certificate read after {why} is invalid, the previous one stays in use: {error}"
            );
        }
    }
}
