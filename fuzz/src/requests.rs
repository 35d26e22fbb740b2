//! HTTP requests written as text, as in `.http` files: input of the targets `edge` and `oauth`.

use http::Request;

/// The requests of `text`, each the text between two lines of `###`.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n###\n")
}

/// Method and target, lines of headers, an empty line, the body; `None` for what is no request.
pub(crate) fn parse(text: &str) -> Option<Request<String>> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(target);
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        request = request.header(name, value);
    }
    request.body(body.to_owned()).ok()
}
