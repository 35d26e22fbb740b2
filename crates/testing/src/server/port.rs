//! Ports of child processes: reserved without a race, or discovered if the child chose another one.

use std::{
    io::{self, Read},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

/// Reserves a free port: for a minute the system does not assign it to anyone who asks for *any* port.
///
/// The port is left in `TIME_WAIT`: `bind` to port 0 skips it, and a `bind` that names it succeeds, since servers set
/// `SO_REUSEADDR` (Rust, Node, Python's asyncio, Go and Java do). So no other test can take it before the child does.
pub(crate) fn reserve() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut client = TcpStream::connect(address)?;
    let (accepted, _) = listener.accept()?;
    // The side that closes first keeps the port in TIME_WAIT.
    drop(accepted);
    client.read_to_end(&mut Vec::new())?;
    Ok(address.port())
}

/// The port in a line of output, as in `listening on http://127.0.0.1:8080/mcp`.
pub(crate) fn in_line(line: &str) -> Option<u16> {
    let hosts = ["127.0.0.1:", "localhost:", "0.0.0.0:", "[::1]:", "[::]:"];
    hosts.iter().find_map(|host| {
        let (_, rest) = line.split_once(host)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|port| *port != 0)
    })
}

/// Ports that processes of this group listen on. Empty on systems other than Linux.
pub(crate) fn listening(group: u32) -> Vec<u16> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut inodes = Vec::new();
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit())
            || !belongs_to(&process.path(), group)
        {
            continue;
        }
        for link in std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten() {
            let target = std::fs::read_link(link.path()).unwrap_or_default();
            let target = target.to_string_lossy();
            if let Some(inode) = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
                inodes.push(inode.to_owned());
            }
        }
    }
    let mut ports = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in std::fs::read_to_string(table).unwrap_or_default().lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            // local address, state (0A: listening), inode
            if fields.len() > 9 && fields[3] == "0A" && inodes.iter().any(|inode| inode == fields[9]) {
                let port = fields[1].rsplit(':').next().and_then(|hex| u16::from_str_radix(hex, 16).ok());
                ports.extend(port);
            }
        }
    }
    ports
}

/// True if a process belongs to the group: field 5 of `stat`, counted after the name in parentheses.
fn belongs_to(process: &std::path::Path, group: u32) -> bool {
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(2))
        .is_some_and(|found| found == group.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_can_be_bound_and_is_not_reserved_again() {
        let port = reserve().unwrap();
        for _ in 0..200 {
            assert_ne!(reserve().unwrap(), port);
        }
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }

    #[test]
    fn reads_a_port_from_a_line() {
        assert_eq!(in_line("INFO: running on http://127.0.0.1:8123 (CTRL+C)"), Some(8123));
        assert_eq!(in_line("listening on localhost:0"), None);
        assert_eq!(in_line("ready"), None);
    }
}
