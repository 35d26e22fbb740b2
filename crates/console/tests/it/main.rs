//! Requests to the console from browsers and from attackers.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod escaping;
#[cfg(test)]
mod live;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod script;
#[cfg(test)]
mod support;
