//! Roots: the folders that a client works in, as it names them (`roots/list`).
//!
//! Paths below them are no secret to the client. A client may name any folder, though: those of the system do not count, nor do those that the
//! home folder of the gateway's user is in.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleServer,
    model::{ListRootsRequest, ServerRequest},
    service::{Peer, PeerRequestOptions},
};
use tokio::sync::Mutex;

/// Roots of one client that count.
const MOST: usize = 64;
/// Bytes of all URIs that are looked at.
const MOST_BYTES: usize = 4 * 1024;
/// Longest wait for the client's answer, once in a session.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// First parts of paths below which the system keeps its own.
const OF_SYSTEM: [&str; 13] =
    ["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "snap", "sys", "usr"];
/// Folders that are shared by users or programs: only what is in them counts.
const SHARED: [&str; 10] =
    ["Applications", "Library", "Users", "home", "media", "mnt", "opt", "private", "srv", "var"];

/// Paths of the gateway itself, which no root of a client opens. Absolute, with `/` between the parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnPaths {
    /// The home folder of the user that the gateway runs as: a root at or above it does not count.
    pub home: Option<String>,
    /// Files and folders that belong to no root, wherever they are.
    pub others: Vec<String>,
}

/// The folders of one client, as plain paths with `/` between the parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roots {
    folders: Vec<String>,
    closed: Vec<String>,
}

impl Roots {
    /// The folders of `uris` that count.
    pub fn new<'u>(uris: impl IntoIterator<Item = &'u str>, own: &OwnPaths) -> Self {
        let mut left = MOST_BYTES;
        let counts = |path: &String| {
            is_clients_folder(path) && !own.home.as_ref().is_some_and(|home| is_below(home, path))
        };
        let fits = |uri: &&str| {
            let room = left.checked_sub(uri.len());
            left = room.unwrap_or(0);
            room.is_some()
        };
        let folders =
            uris.into_iter().take(MOST).take_while(fits).filter_map(path_of).filter(counts).collect();
        Self { folders, closed: own.others.clone() }
    }

    /// The folders at these absolute paths that count.
    pub fn of_paths(paths: &[String], own: &OwnPaths) -> Self {
        let uris: Vec<_> = paths.iter().map(|path| format!("file://{}", path.replace('%', "%25"))).collect();
        Self::new(uris.iter().map(String::as_str), own)
    }

    /// Tests for a path, of any system, that is one of the roots or below one.
    pub fn contain(&self, path: &str) -> bool {
        if self.folders.is_empty() {
            return false;
        }
        let path = path.replace('\\', "/");
        let path = path.trim_end_matches('/');
        if self.closed.iter().any(|closed| is_below(path, closed)) {
            return false;
        }
        // What a message has behind a root is one path only if nothing in it begins another one.
        let begins_another = |part: &str| {
            matches!(part, "" | "." | "..") || part.starts_with(' ') || part.ends_with([' ', ':'])
        };
        let is_odd = |c: char| c.is_control() || "%~\"'`<>|$".contains(c);
        let is_plain = |rest: &str| !rest.contains(is_odd) && !rest.split('/').any(begins_another);
        let below = |root: &String| path.strip_prefix(root.as_str());
        self.folders
            .iter()
            .filter_map(below)
            .any(|rest| rest.is_empty() || rest.strip_prefix('/').is_some_and(is_plain))
    }
}

/// The path of a `file` URI on this host.
fn path_of(uri: &str) -> Option<String> {
    let rest = uri.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")).map(|_| &uri[7..])?;
    let path = percent_decoded(rest.strip_prefix("localhost").unwrap_or(rest))?.replace('\\', "/");
    let path = path.strip_prefix('/').filter(|path| has_drive(path)).unwrap_or(&path).trim_end_matches('/');
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
    let parts = path.strip_prefix('/').or_else(|| has_drive(path).then_some(path))?;
    parts.split('/').all(is_plain).then(|| path.to_owned())
}

fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic())
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                *data_encoding::HEXLOWER_PERMISSIVE.decode(&digits).ok()?.first()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

/// Tests for a folder that may be a client's own, and is not one of a whole system.
fn is_clients_folder(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let first = parts.next().unwrap_or_default();
    let only = parts.next().is_none();
    match has_drive(path) {
        true => !only,
        false => !(OF_SYSTEM.contains(&first) || only && SHARED.contains(&first)),
    }
}

/// Tests for `path` at or below `folder`.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The roots of the client of one session, asked for once until it says that they changed.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionRoots(Arc<Mutex<Option<Arc<Roots>>>>);

impl SessionRoots {
    pub(super) async fn get(&self, peer: &Peer<RoleServer>, own: &OwnPaths) -> Arc<Roots> {
        if peer.peer_info().is_none_or(|client| client.capabilities.roots.is_none()) {
            return Arc::default();
        }
        let mut known = self.0.lock().await;
        if let Some(known) = &*known {
            return known.clone();
        }
        let listed = tokio::time::timeout(LONGEST_WAIT, ask(peer)).await.ok().flatten().unwrap_or_default();
        let roots = Arc::new(Roots::new(listed.iter().map(String::as_str), own));
        known.insert(roots).clone()
    }

    pub(super) async fn forget(&self) {
        *self.0.lock().await = None;
    }
}

async fn ask(peer: &Peer<RoleServer>) -> Option<Vec<String>> {
    let request = ServerRequest::ListRootsRequest(ListRootsRequest::default());
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok()?;
    match handle.await_response().await.ok()? {
        rmcp::model::ClientResult::ListRootsResult(listed) => {
            Some(listed.roots.into_iter().take(MOST).map(|root| root.uri).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(uris: &[&str]) -> Roots {
        let others = vec!["/data/my files/gateway.yaml".to_owned()];
        Roots::new(uris.iter().copied(), &OwnPaths { home: Some("/root/ann".to_owned()), others })
    }

    #[test]
    fn paths_at_and_below_a_root_are_contained_and_others_are_not() {
        let roots =
            roots(&["file:///data/my%20files/", "file://localhost/home/ann/x", "file:///c:/Users/ann"]);
        for path in ["/data/my files", "/data/my files/a.txt", "/home/ann/x/b c/d-1.txt", r"c:\Users\ann\y"] {
            assert!(roots.contain(path), "{path}");
        }
        for path in [
            "/data/my files2",
            "/data",
            "/home/ann/x/../.ssh/id_rsa",
            "/home/ann/x/%2e%2e/y",
            "/home/ann/x and /etc/passwd",
            "/home/ann/x/a: /etc/passwd",
            "/home/ann/x/a '/etc/passwd'",
            "/home/ann/x//etc/passwd",
            r"c:\Users\ann\..\bob",
            "/home/ann/x/$HOME",
            "/data/my files/gateway.yaml",
            "",
        ] {
            assert!(!roots.contain(path), "{path}");
        }
    }

    #[test]
    fn roots_that_are_no_folder_of_a_client_do_not_count() {
        for uri in [
            "file:///",
            "file://",
            "file:///..",
            "file:///data/../etc",
            "file:///data/%2e%2e/etc",
            "file:///data/%2E./x",
            "file:////etc",
            "file:///etc/x",
            "file:///usr/lib/node_modules",
            "file:///home",
            "file:///var/",
            "file:///root",
            "file:///root/ann",
            "file:///C:/",
            "file:///C:",
            "file://server/share/x",
            "file:///data/%ff",
            "file:///data/%0a",
            "file:///data/%4",
            "https://example.com/data",
            "/data",
            "data",
            "é",
        ] {
            assert!(roots(&[uri]).folders.is_empty(), "{uri}");
        }
        assert_eq!(roots(&["FILE:///root/ann/project"]).folders, ["/root/ann/project"]);
    }

    #[test]
    fn roots_are_few_and_short() {
        let many: Vec<String> = (0..1_000).map(|n| format!("file:///d/{n}")).collect();
        assert_eq!(roots(&many.iter().map(String::as_str).collect::<Vec<_>>()).folders.len(), MOST);
        let long = format!("file:///{}", "d".repeat(1_000_000));
        assert!(roots(&[&long, "file:///data"]).folders.is_empty());
        let path = "/x/y".repeat(100_000);
        assert!(!roots(&["file:///data"]).contain(&path));
    }
}
