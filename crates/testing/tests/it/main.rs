//! The toolkit, tried on servers that behave and servers that do not.
#![expect(
    deprecated,
    reason = "the older era still has logging and sampling, which SEP-2577 marks as deprecated"
)]

mod cassettes;
mod eras;
mod fixtures;
mod http_mocks;
mod intercepts;
mod matchers;
mod memory;
mod misbehaving;
mod mocks;
mod oauth;
mod servers;
mod suites;
mod support;
mod tokens;
