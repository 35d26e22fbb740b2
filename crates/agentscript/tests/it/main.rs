//! Everything the crate promises, tried from outside.

#[cfg(test)]
mod run;
#[cfg(test)]
mod support;
