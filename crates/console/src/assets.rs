//! The style and the script of the pages, which browsers keep until they change.

use std::sync::LazyLock;

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
    routing::get,
};
use gatewright_pages::Inline;
use http::{HeaderValue, Uri, header};

/// A file of the pages.
struct Asset {
    file: Inline,
    path: &'static str,
    kind: &'static str,
    /// Path and version.
    address: String,
}

impl Asset {
    fn new(text: String, path: &'static str, kind: &'static str) -> Self {
        let file = Inline::new(text.leak());
        let address = format!("{path}?v={}", file.version());
        Self { file, path, kind, address }
    }

    /// The file. Only at its own version is it kept: an older instance may be asked for that of a newer one's page.
    fn response(&self, uri: &Uri) -> Response {
        let is_own = uri.path_and_query().is_some_and(|asked| asked.as_str() == self.address);
        let kept = if is_own { "max-age=31536000, immutable" } else { "no-cache" };
        let mut response = Body::from(self.file.text()).into_response();
        for (name, value) in [(header::CONTENT_TYPE, self.kind), (header::CACHE_CONTROL, kept)] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let text = [gatewright_pages::STYLE.text(), include_str!("assets/console.css")].concat();
    Asset::new(text, "/console/style.css", "text/css; charset=utf-8")
});

static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let text = include_str!("assets/console.js").to_owned();
    Asset::new(text, "/console/script.js", "text/javascript; charset=utf-8")
});

/// Tells browsers to ask for both files before they read the page (`Link`, RFC 8288; HTML §4.6.7, `preload`).
static PRELOAD: LazyLock<HeaderValue> = LazyLock::new(|| {
    let text = format!("<{}>; rel=preload; as=style, <{}>; rel=preload; as=script", style(), script());
    HeaderValue::try_from(text).expect("addresses are ASCII")
});

/// Address of the style.
pub(crate) fn style() -> &'static str {
    &STYLE.address
}

/// Address of the script.
pub(crate) fn script() -> &'static str {
    &SCRIPT.address
}

/// Value of `Link` for pages with both.
pub(crate) fn preload() -> HeaderValue {
    PRELOAD.clone()
}

/// Both files.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let route = |router: Router<S>, asset: &'static LazyLock<Asset>| {
        router.route(asset.path, get(async |uri: Uri| asset.response(&uri)))
    };
    route(route(Router::new(), &STYLE), &SCRIPT)
}
