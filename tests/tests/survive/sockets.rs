//! What lies in sockets and was not read yet, by way of Linux.

use std::collections::BTreeSet;
use std::fs;

/// The local ports of the connections to `port` of this machine in which something waits to be read.
pub(crate) fn unread_from(port: u16) -> BTreeSet<u16> {
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux tells");
    let unread = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let port_of = |address: &str| u16::from_str_radix(address.rsplit(':').next()?, 16).ok();
        let (local, remote) = (port_of(columns.next()?)?, port_of(columns.next()?)?);
        let queues = columns.nth(1)?;
        let waiting = u64::from_str_radix(queues.split(':').nth(1)?, 16).ok()?;
        (remote == port && waiting > 0).then_some(local)
    };
    table.lines().skip(1).filter_map(unread).collect()
}
