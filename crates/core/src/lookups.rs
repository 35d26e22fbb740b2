//! Lookups of host names that strangers choose. The system's resolver cannot be cancelled: a lookup keeps its thread until its name servers answer, or
//! the resolver gives up, which may take minutes. So threads are counted, those for names of one domain too.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
};

use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::OwnPlaces;

/// Lookups at once.
const MOST: usize = 256;
/// Those of names of one domain.
const MOST_OF_ONE: usize = 4;
/// Length of the second-level names below which countries register domains, such as `co.uk`.
const LONGEST_OF_COUNTRY: usize = 3;

/// Looks names up, so many at a time. More wait.
#[derive(Debug)]
pub(crate) struct Lookups {
    all: Arc<Semaphore>,
    own: OwnPlaces<String>,
}

impl Default for Lookups {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MOST)), own: OwnPlaces::new(MOST_OF_ONE) }
    }
}

impl Lookups {
    /// The addresses of `name`, as the system's resolver says.
    ///
    /// # Errors
    /// It has none, or the resolver failed.
    pub(crate) async fn look_up(&self, name: String) -> io::Result<Vec<IpAddr>> {
        self.run(name, |name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())).await
    }

    /// `resolve` keeps the places of its name until it returns, whether or not somebody waits for it.
    async fn run(
        &self,
        name: String,
        resolve: impl FnOnce(&str) -> io::Result<Vec<IpAddr>> + Send + 'static,
    ) -> io::Result<Vec<IpAddr>> {
        let own = self.own.of(domain(&name)).acquire_owned().await;
        let any = self.all.clone().acquire_owned().await;
        let look = move || {
            let found = resolve(&name);
            drop((own, any));
            found
        };
        spawn_blocking(look).await?
    }
}

/// The domain of a name: its last two labels, or three below names such as `co.uk`.
fn domain(name: &str) -> String {
    let name = name.trim_end_matches('.');
    let mut labels = name.rsplit('.');
    let (top, second) = (labels.next().unwrap_or_default(), labels.next().unwrap_or_default());
    let is_of_country = top.len() == 2 && second.len() <= LONGEST_OF_COUNTRY;
    let start = name.rmatch_indices('.').nth(if is_of_country { 2 } else { 1 }).map_or(0, |(at, _)| at + 1);
    name[start..].to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn the_domain_of_a_name_is_what_somebody_registers() {
        for (name, expected) in [
            ("a.b.Example.com", "example.com"),
            ("example.com.", "example.com"),
            ("localhost", "localhost"),
            ("a.b.shop.co.uk", "shop.co.uk"),
            ("co.uk", "co.uk"),
            ("a.example.de", "example.de"),
            ("", ""),
        ] {
            assert_eq!(domain(name), expected);
        }
    }

    #[tokio::test]
    async fn lookups_that_hang_keep_their_places_and_names_of_other_domains_have_theirs() {
        let lookups = Lookups::default();
        let (began, begins) = mpsc::channel();
        let mut release = Vec::new();
        for n in 0..3 * MOST_OF_ONE {
            let (end, ended) = mpsc::channel::<()>();
            release.push(end);
            let began = began.clone();
            let hangs = lookups.run(format!("{n}.evil.example"), move |_| {
                began.send(()).unwrap();
                let _ = ended.recv();
                Ok(Vec::new())
            });
            // Whoever asked gives up.
            let _ = hangs.now_or_never();
        }
        for _ in 0..MOST_OF_ONE {
            begins.recv().unwrap();
        }
        assert_eq!(lookups.all.available_permits(), MOST - MOST_OF_ONE);
        let here = vec![IpAddr::from([127, 0, 0, 1])];
        let found = here.clone();
        assert_eq!(lookups.run("good.example".to_owned(), move |_| Ok(found)).await.unwrap(), here);
        let mut waits = Box::pin(lookups.run("last.evil.example".to_owned(), |_| Ok(Vec::new())));
        assert!((&mut waits).now_or_never().is_none());
        drop(release);
        assert!(waits.await.unwrap().is_empty());
    }
}
