//! Endpoints of authorization servers that a document names: they get the gateway's client secret, and codes and tokens of users.

use url::{Host, Url};

/// The endpoint `url` of a document, relative to `server`. `field` of the configuration replaces it.
///
/// With `baseUrl`, the document is not trusted with credentials: only an endpoint of that origin is used.
///
/// # Errors
/// It is not used, and why.
pub(crate) fn of_document(
    url: &str,
    field: &str,
    server: Option<&Url>,
    base: Option<&Url>,
) -> Result<Url, String> {
    let parsed = match server {
        Some(server) => server.join(url),
        None => Url::parse(url),
    };
    let url =
        parsed.map_err(|_| format!("the document names an endpoint that is no address; set `{field}`"))?;
    match base {
        Some(base) if base.origin() == url.origin() => Ok(url),
        Some(_) => Err(format!(
            "the document names an endpoint at {}, which is not the origin of `baseUrl`, so no credentials go there; set `{field}` if \
             it is the right one",
            origin(&url)
        )),
        None if is_safe(&url) => Ok(url),
        None => Err(format!(
            "the document names an endpoint at {}, which is no `https` address, so no credentials go there; set `{field}`",
            origin(&url)
        )),
    }
}

fn is_safe(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || url.scheme() == "http" && is_loopback
}

/// The origin, for an error: a path may have a key.
fn origin(url: &Url) -> String {
    let origin = url.origin().ascii_serialization();
    origin[..origin.floor_char_boundary(100)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_base_url_only_its_origin_is_used_and_without_one_https() {
        let url = |text: &str| Url::parse(text).unwrap();
        let (server, base) = (url("https://api.example/v1/"), url("https://api.example/v2"));
        let used = |url: &str, base| of_document(url, "tokenUrl", Some(&server), base).map(String::from);
        for own in ["/token", "https://api.example/token", "https://API.example:443/token"] {
            assert_eq!(used(own, Some(&base)).as_deref(), Ok("https://api.example/token"), "{own}");
        }
        for other in [
            "https://login.example/token",
            "http://api.example/token",
            "https://api.example:8443/token",
            "file:///t",
        ] {
            let problem = used(other, Some(&base)).unwrap_err();
            assert!(problem.contains("set `tokenUrl`"), "{problem}");
        }
        for fine in
            ["https://login.example/t", "http://127.0.0.1:1/t", "http://[::1]/t", "http://localhost/t"]
        {
            assert!(used(fine, None).is_ok(), "{fine}");
        }
        for refused in
            ["http://login.example/t", "http://10.0.0.1/t", "file:///t", "http://localhost.example/t"]
        {
            assert!(used(refused, None).unwrap_err().contains("no `https` address"), "{refused}");
        }
        assert!(of_document("/token", "tokenUrl", None, None).is_err());
    }
}
