//! Tests of the crate's public interface.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod contract_rows;
#[cfg(test)]
mod ecmascript;
#[cfg(test)]
mod explain;
mod growth;
#[cfg(test)]
mod host_memory;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod locale;
#[cfg(test)]
mod parked;
#[cfg(test)]
mod plan_check;
#[cfg(test)]
mod plan_facts;
#[cfg(test)]
mod plan_notes;
mod pool;
#[cfg(test)]
mod run;
#[cfg(test)]
mod run_cases;
#[cfg(test)]
mod run_errors;
#[cfg(test)]
mod run_parallel;
#[cfg(test)]
mod run_values;
#[cfg(test)]
mod support;
#[cfg(test)]
mod validate;
#[cfg(test)]
mod validate_exhaustion;
#[cfg(test)]
mod validate_fuzz;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod worker_memory;
