//! Requests to the console from browsers and from attackers.

#[cfg(test)]
mod approvals;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod escaping;
#[cfg(test)]
mod history;
#[cfg(test)]
mod instances;
#[cfg(test)]
mod live;
#[cfg(test)]
mod overview;
#[cfg(test)]
mod pins;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod script;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod support;
