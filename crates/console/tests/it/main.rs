//! The console's pages, asked the way a browser and an attacker ask.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod escaping;
#[cfg(test)]
mod live;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod script;
#[cfg(test)]
mod support;
