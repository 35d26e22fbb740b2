//! Promises of tool search, checked through its public interface.
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod crowding;
#[cfg(test)]
mod filters;
#[cfg(test)]
mod finding;
#[cfg(test)]
mod growth;
mod kinds_of_tools;
#[cfg(test)]
mod places;
#[cfg(test)]
mod scores;
#[cfg(test)]
mod support;
#[cfg(test)]
mod updates;
#[cfg(test)]
mod usage;
