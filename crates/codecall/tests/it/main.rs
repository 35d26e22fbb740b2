//! Code mode behind a gateway, over tools that answer as a test says.

#[cfg(test)]
mod addresses;
#[cfg(test)]
mod answered_on_page;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod approvals_in_plans;
#[cfg(test)]
mod approvals_of_content;
#[cfg(test)]
mod asking;
#[cfg(test)]
mod bare_paths;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod detached;
#[cfg(test)]
mod held;
#[cfg(test)]
mod held_elsewhere;
#[cfg(test)]
mod host_memory;
#[cfg(test)]
mod inputs;
#[cfg(test)]
mod lenient;
#[cfg(test)]
mod listed_resources;
#[cfg(test)]
mod lost_lease;
#[cfg(test)]
mod modes;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod older_servers;
#[cfg(test)]
mod page;
#[cfg(test)]
#[path = "../../../../tests/person/mod.rs"]
mod person;
#[cfg(test)]
mod plan_inputs;
#[cfg(test)]
mod reach;
#[cfg(test)]
#[path = "../../../../tests/records/mod.rs"]
mod records;
#[cfg(test)]
mod rehearsal;
#[cfg(test)]
mod results;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod saved_plans;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod suggestions;
#[cfg(test)]
mod support;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod waiting;
#[cfg(test)]
mod woken;
