//! Promises of the demo apps, checked from outside.

#[cfg(test)]
mod data;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod metadata;
#[cfg(test)]
mod outputs;
#[cfg(test)]
mod support;
