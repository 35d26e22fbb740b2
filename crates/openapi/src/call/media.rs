//! Kinds of media types.

/// Returns `true` for JSON and types that are written as JSON.
pub(crate) fn is_json(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    matches!(&*kind, "application/json" | "text/json") || kind.ends_with("+json")
}

/// Returns `true` for types whose content is text, in lower case and without parameters.
pub(crate) fn is_text(kind: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
        "application/graphql",
        "application/x-www-form-urlencoded",
    ];
    kind.starts_with("text/")
        || (kind.ends_with("+xml") && !kind.starts_with("image/"))
        || kind.ends_with("+yaml")
        || OTHERS.contains(&kind)
}
