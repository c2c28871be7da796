//! Which user is at the other end of a loopback connection, as Linux tells it.

use std::io::Read;
use std::net::{SocketAddr, SocketAddrV4};

/// The table is read up to here.
const MAX_TABLE: u64 = 16 << 20;
const LISTENING: &str = "0A";

/// Whether the one at `peer`, connected to our `local`, may control this daemon: the same user, or root. Where the
/// system does not tell, everybody may, as everywhere before.
pub(super) fn may_control(peer: SocketAddr, local: SocketAddr) -> bool {
    let (SocketAddr::V4(peer), SocketAddr::V4(local)) = (peer, local) else { return true };
    let owner = table().and_then(|table| owner(&table, |row| row.local == peer && row.remote == local));
    owner.is_none_or(|uid| uid == 0 || uid == rustix::process::geteuid().as_raw())
}

/// The user whose program listens at an address.
pub(crate) fn of_listener(at: SocketAddrV4) -> Option<u32> {
    owner(&table()?, |row| row.local == at && row.listening)
}

/// The number of the socket that listens at an address, by which whoever holds it can be found.
#[cfg(target_os = "linux")]
pub(crate) fn socket_of_listener(at: SocketAddrV4) -> Option<u64> {
    table()?.lines().skip(1).filter_map(row).find(|row| row.local == at && row.listening).map(|row| row.inode)
}

struct Row {
    local: SocketAddrV4,
    remote: SocketAddrV4,
    listening: bool,
    uid: u32,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nobody asks for it"))]
    inode: u64,
}

fn table() -> Option<String> {
    let mut text = String::new();
    std::fs::File::open("/proc/net/tcp").ok()?.take(MAX_TABLE).read_to_string(&mut text).ok()?;
    Some(text)
}

fn owner(table: &str, wanted: impl Fn(&Row) -> bool) -> Option<u32> {
    table.lines().skip(1).filter_map(row).find(wanted).map(|row| row.uid)
}

fn row(line: &str) -> Option<Row> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let local = address(fields.next()?)?;
    let remote = address(fields.next()?)?;
    let listening = fields.next()? == LISTENING;
    let uid = fields.nth(3)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some(Row { local, remote, listening, uid, inode })
}

/// The address is the number that its four bytes are in memory, the port is a plain number.
fn address(text: &str) -> Option<SocketAddrV4> {
    let (host, port) = text.split_once(':')?;
    let host = u32::from_str_radix(host, 16).ok()?;
    Some(SocketAddrV4::new(host.to_ne_bytes().into(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn the_owner_of_a_connection_and_of_a_listener_is_found() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let SocketAddr::V4(at) = listener.local_addr().expect("an address") else { panic!("IPv4") };
        let me = rustix::process::geteuid().as_raw();
        assert_eq!(of_listener(at), Some(me));
        let client = TcpStream::connect(at).expect("connected");
        let (server, peer) = listener.accept().expect("accepted");
        let local = server.local_addr().expect("an address");
        assert!(may_control(peer, local));
        let row = |row: &Row| SocketAddr::V4(row.local) == peer && SocketAddr::V4(row.remote) == local;
        assert_eq!(owner(&table().expect("a table"), row), Some(me));
        drop(client);
    }

    #[test]
    fn another_user_is_told_apart() {
        let hex = |a: SocketAddrV4| format!("{:08X}:{:04X}", u32::from_ne_bytes(a.ip().octets()), a.port());
        let (peer, local) =
            (SocketAddrV4::new(Ipv4Addr::LOCALHOST, 40000), SocketAddrV4::new(Ipv4Addr::LOCALHOST, 19514));
        let line = format!(
            "   3: {} {} 01 00000000:00000000 00:00000000 00000000  1234        0 5 1",
            hex(peer),
            hex(local)
        );
        let table = format!("  sl  local_address\nbroken line\n{line}\n");
        assert_eq!(owner(&table, |row| row.local == peer && row.remote == local), Some(1234));
        assert_eq!(owner(&table, |row| row.local == local), None);
    }
}
