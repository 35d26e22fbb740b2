//! Resources of this process, under the names that Prometheus' own clients use.

use super::text::{counter, gauge};

/// Ticks in a second of the times in `/proc` (`USER_HZ`): 100 on every architecture that is built for.
const TICKS: f64 = 100.0;

/// Renders processor time, memory, descriptors and the start of this process, in Prometheus' text format. Workers and apps that are
/// commands are processes of their own and not included. A value that the system does not report is left out.
pub fn process_metrics() -> String {
    let stat = read("stat").and_then(|text| Stat::parse(&text));
    let stat = stat.as_ref();
    let status = read("status").unwrap_or_default();
    let kib = |name: &str| number(status.lines().find_map(|line| line.strip_prefix(name))?);
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64 - 1.0);
    let limits = read("limits").unwrap_or_default();
    let most = limits.lines().find_map(|line| line.strip_prefix("Max open files")).and_then(number);
    let seconds =
        stat.map(|stat| counter("process_cpu_seconds_total", "Processor time, in seconds", stat.processor_s));
    let gauges = [
        (
            "process_start_time_seconds",
            "Start, in seconds since 1970",
            stat.and_then(|stat| Some(stat.started_s + booted_s()?)),
        ),
        ("process_threads", "Threads", stat.map(|stat| stat.threads)),
        ("process_resident_memory_bytes", "Resident memory, in bytes", kib("VmRSS:").map(|kib| kib * 1024.0)),
        ("process_open_fds", "Open descriptors", open),
        ("process_max_fds", "Descriptors that may be open", most),
    ];
    let gauges = gauges.into_iter().filter_map(|(name, help, value)| Some(gauge(name, help, value?)));
    seconds.into_iter().chain(gauges).collect()
}

fn read(name: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/self/{name}")).ok()
}

/// The first word, when it is a number.
fn number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Start of the machine, in seconds since 1970.
fn booted_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime ")).and_then(number)
}

/// Of `/proc/self/stat` (`proc_pid_stat(5)`).
#[derive(Debug, PartialEq)]
struct Stat {
    processor_s: f64,
    threads: f64,
    /// Since the machine's start.
    started_s: f64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name in the second field may hold spaces and parentheses; the third field comes after the last one.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        Some(Self {
            processor_s: (field(14)? + field(15)?) / TICKS,
            threads: field(20)?,
            started_s: field(22)? / TICKS,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_move_the_fields() {
        let text = "7 (a ) b (c) S 1 7 7 0 -1 4194304 10 0 0 0 150 50 0 0 20 0 4 0 200 1 2";
        assert_eq!(Stat::parse(text), Some(Stat { processor_s: 2.0, threads: 4.0, started_s: 2.0 }));
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn this_process_has_each_of_them() {
        let text = process_metrics();
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_open_fds") >= 3.0 && value("process_open_fds") < value("process_max_fds"));
        assert!(value("process_threads") >= 1.0 && value("process_cpu_seconds_total") >= 0.0);
        // 2020-01-01 to 2100-01-01.
        assert!((1_577_836_800.0..4_102_444_800.0).contains(&value("process_start_time_seconds")));
    }
}
