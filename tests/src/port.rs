//! A loopback port that is kept for a daemon.

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

/// A port that nobody else is given while this lives. Its socket is bound and never listens, so that a daemon, which may share
/// the address as every listener may, can take it.
#[derive(Debug)]
pub struct ReservedPort {
    _socket: OwnedFd,
    port: u16,
}

impl ReservedPort {
    /// Reserves a free port of 127.0.0.1.
    pub fn new() -> Self {
        let reserve = || {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
            let port = SocketAddrV4::try_from(getsockname(&socket)?)?.port();
            Ok::<_, rustix::io::Errno>(Self { _socket: socket, port })
        };
        reserve().expect("a free port")
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Default for ReservedPort {
    fn default() -> Self {
        Self::new()
    }
}
