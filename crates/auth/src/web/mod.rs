//! HTTP requests and responses that several endpoints share: parameters, cookies, pages and redirects.

pub(crate) mod params;
pub(crate) mod responses;
