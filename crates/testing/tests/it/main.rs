//! Tests of the kit, with servers that behave and servers that do not.
#![expect(
    deprecated,
    reason = "the older era still has logging and sampling, which SEP-2577 marks as deprecated"
)]

#[cfg(test)]
mod attributes;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod cassettes;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod defects;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod expectations;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod http_cassettes;
#[cfg(test)]
mod http_mock_failures;
#[cfg(test)]
mod http_mocks;
#[cfg(test)]
mod http_passthrough;
#[cfg(test)]
mod intercepts;
#[cfg(test)]
mod late_answers;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod matchers;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod memory_auth;
#[cfg(test)]
mod misbehaving;
#[cfg(test)]
mod mocks;
#[cfg(test)]
mod oauth;
#[cfg(test)]
mod oauth_dpop;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod servers;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod shared_servers;
#[cfg(test)]
mod suite_answers;
#[cfg(test)]
mod suite_cases;
#[cfg(test)]
mod suite_cassettes;
#[cfg(test)]
mod suite_files;
#[cfg(test)]
mod suite_http;
#[cfg(test)]
mod suite_reports;
#[cfg(test)]
mod suite_runs;
#[cfg(test)]
mod suites;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod values;
