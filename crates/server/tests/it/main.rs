//! The server as its clients see it.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod body_values;
#[cfg(test)]
mod cancelled;
#[cfg(test)]
mod cluster;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod corners;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod eras;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod guards;
#[cfg(test)]
mod health;
#[cfg(test)]
mod held;
#[cfg(test)]
mod https;
#[cfg(test)]
mod hub;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod modes;
#[cfg(test)]
mod principals;
#[cfg(test)]
mod shutdown;
#[cfg(test)]
mod sse;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod support;
#[cfg(test)]
mod unsent;
