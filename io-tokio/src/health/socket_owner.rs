//! Which user is at the other end of a loopback connection, as Linux tells it.

use std::io::Read;
use std::net::{SocketAddr, SocketAddrV4};

/// A table is read up to here.
const MAX_TABLE: u64 = 16 << 20;
const LISTENING: &str = "0A";
/// The system gives the table in pieces, and what changes meanwhile may make it leave out a row.
const LOOKS: usize = 3;

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// A user.
    User(u32),
    /// Nobody any more: the socket was closed, so nothing says whose it was.
    Gone,
    /// The system does not tell.
    Untold,
}

impl Peer {
    /// Whether a daemon of `owner` does what it is told by it. Where the system does not tell, everybody may control a daemon, as everywhere
    /// before; who does not wait for the answer may not, or whoever is quick enough could.
    const fn may_control(self, owner: u32) -> bool {
        match self {
            Self::User(uid) => uid == 0 || uid == owner,
            Self::Gone => false,
            Self::Untold => true,
        }
    }
}

/// Whether the one at `peer`, connected to our `local`, may control this daemon: the same user, or root.
pub(super) fn may_control(peer: SocketAddr, local: SocketAddr) -> bool {
    let (SocketAddr::V4(peer), SocketAddr::V4(local)) = (peer, local) else { return true };
    let mut seen = Peer::Gone;
    for _ in 0..LOOKS {
        // A socket of IPv6 may speak to an address of IPv4, and is in the other table.
        seen = match look(table().as_deref(), peer, local) {
            Peer::Gone => look_mapped(table_6().as_deref(), peer, local),
            seen => seen,
        };
        if seen != Peer::Gone {
            break;
        }
    }
    seen.may_control(rustix::process::geteuid().as_raw())
}

/// Whose socket is at `peer`, connected to `local`, where a daemon listens.
fn look(table: Option<&str>, peer: SocketAddrV4, local: SocketAddrV4) -> Peer {
    let Some(table) = table else { return Peer::Untold };
    let rows = || table.lines().skip(1).filter_map(row);
    match rows().find(|row| row.local == peer && row.remote == local) {
        Some(row) => row.peer(),
        // A table without even the daemon's own socket says nothing of others.
        None if rows().any(|row| row.listening && row.local.port() == local.port()) => Peer::Gone,
        None => Peer::Untold,
    }
}

fn look_mapped(table: Option<&str>, peer: SocketAddrV4, local: SocketAddrV4) -> Peer {
    let mut rows = table.unwrap_or_default().lines().skip(1).filter_map(mapped_row);
    rows.find(|row| row.local == peer && row.remote == local).map_or(Peer::Gone, |row| row.peer())
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
    /// 0 of a socket that nobody holds any more; its user is shown as 0 as well.
    inode: u64,
}

impl Row {
    const fn peer(&self) -> Peer {
        if self.inode == 0 { Peer::Gone } else { Peer::User(self.uid) }
    }
}

fn table() -> Option<String> {
    read("/proc/net/tcp")
}

fn table_6() -> Option<String> {
    read("/proc/net/tcp6")
}

fn read(path: &str) -> Option<String> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(MAX_TABLE).read_to_string(&mut text).ok()?;
    Some(text)
}

fn owner(table: &str, wanted: impl Fn(&Row) -> bool) -> Option<u32> {
    table.lines().skip(1).filter_map(row).find(wanted).map(|row| row.uid)
}

fn row(line: &str) -> Option<Row> {
    row_of(line, address)
}

/// A row between two addresses of IPv4, in the table of IPv6.
fn mapped_row(line: &str) -> Option<Row> {
    row_of(line, mapped_address)
}

fn row_of(line: &str, address: impl Fn(&str) -> Option<SocketAddrV4>) -> Option<Row> {
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

/// Four such numbers are an address of IPv6; the last one is that of IPv4.
fn mapped_address(text: &str) -> Option<SocketAddrV4> {
    const PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    let (words, last) = text.split_at_checked(24)?;
    let word = |at: usize| Some(u32::from_str_radix(words.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let prefix = [word(0)?, word(8)?, word(16)?].concat();
    if prefix == PREFIX { address(last) } else { None }
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

    const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 40000);
    const LOCAL: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 19514);

    /// A table with these sockets: where they are, the other end, the state, the user and the inode.
    fn table_of(rows: &[(&str, &str, &str, u32, u64)]) -> String {
        let rows = rows.iter().map(|(from, to, state, uid, inode)| {
            format!("   3: {from} {to} {state} 00000000:00000000 00:00000000 00000000 {uid:5}        0 {inode} 1\n")
        });
        format!("  sl  local_address\nbroken line\n{}", rows.collect::<String>())
    }

    fn hex(at: SocketAddrV4) -> String {
        format!("{:08X}:{:04X}", u32::from_ne_bytes(at.ip().octets()), at.port())
    }

    fn mapped(at: SocketAddrV4) -> String {
        format!("{:024X}{}", u128::from(u32::from_ne_bytes([0, 0, 0xff, 0xff])), hex(at))
    }

    #[test]
    fn the_peer_is_its_user_or_gone_or_untold() {
        let (peer, local, nobody) = (hex(PEER), hex(LOCAL), "00000000:0000");
        let listener = (local.as_str(), nobody, LISTENING, 1000, 7);
        let of = |rows: &[_]| look(Some(&table_of(rows)), PEER, LOCAL);
        assert_eq!(of(&[listener, (&peer, &local, "01", 1234, 5)]), Peer::User(1234));
        assert_eq!(of(&[listener, (&local, &peer, "01", 1234, 5)]), Peer::Gone, "that is the daemon's end");
        assert_eq!(of(&[listener, (&peer, &local, "05", 0, 0)]), Peer::Gone, "it looks like one of root");
        assert_eq!(of(&[listener]), Peer::Gone);
        assert_eq!((of(&[]), look(None, PEER, LOCAL)), (Peer::Untold, Peer::Untold));

        let (peer, local) = (mapped(PEER), mapped(LOCAL));
        let of = |rows: &[_]| look_mapped(Some(&table_of(rows)), PEER, LOCAL);
        assert_eq!(of(&[(&peer, &local, "01", 1234, 5)]), Peer::User(1234));
        assert_eq!((of(&[]), look_mapped(None, PEER, LOCAL)), (Peer::Gone, Peer::Gone));
        let other = format!("{:024X}{}", 1, hex(PEER));
        assert_eq!(of(&[(&other, &local, "01", 1234, 5)]), Peer::Gone, "an address of its own");
    }

    #[test]
    fn root_and_the_owner_control_a_daemon_and_who_has_gone_does_not() {
        for (peer, may) in [
            (Peer::User(1000), true),
            (Peer::User(0), true),
            (Peer::User(1001), false),
            (Peer::User(65534), false),
            (Peer::Gone, false),
            (Peer::Untold, true),
        ] {
            assert_eq!(peer.may_control(1000), may, "{peer:?}");
        }
        assert!(!Peer::User(1000).may_control(0), "a daemon of root is root's");
    }

    #[test]
    fn who_closes_at_once_is_nobody() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let at = listener.local_addr().expect("an address");
        let client = TcpStream::connect(at).expect("connected");
        let (server, peer) = listener.accept().expect("accepted");
        assert!(may_control(peer, at));
        drop(client);
        // The server has not closed its end, so the connection is still in the table.
        assert!(!may_control(peer, at));
        drop(server);
    }

    #[test]
    fn a_socket_of_ipv6_has_its_user_too() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let at = listener.local_addr().expect("an address");
        let mapped = (Ipv4Addr::LOCALHOST.to_ipv6_mapped(), at.port());
        let Ok(client) = TcpStream::connect(mapped) else {
            eprintln!("skipped: this machine has no IPv6");
            return;
        };
        let (_server, peer) = listener.accept().expect("accepted");
        assert!(may_control(peer, at));
        drop(client);
        assert!(!may_control(peer, at));
    }
}
