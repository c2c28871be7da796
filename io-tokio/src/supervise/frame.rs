//! The framing on the sockets between daemon, supervisor and helper: length, kind, payload.

use std::io::{self, Read, Write};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The largest payload, in bytes: a job with its prompt and its skill files fits many times over.
pub(crate) const MAX_PAYLOAD: usize = 64 * 1024 * 1024;

const HEADER: usize = 5;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Helper to daemon: it will die with its supervisor, and waits for a job.
    Hello = b'H',
    /// Daemon to helper: the preparation to do, opaque.
    Job = b'J',
    /// Helper to daemon: what the preparation gave, opaque.
    Reply = b'R',
    /// Daemon to helper: an encoded [`ExecCall`](super::exec_call::ExecCall).
    Exec = b'X',
    /// Between daemon and supervisor: JSON of [`super::protocol`].
    Message = b'M',
    /// Helper to supervisor: the next thing it does is the exec.
    Going = b'G',
    /// Helper to supervisor: why it did not become the agent, as JSON.
    Failed = b'F',
}

impl Kind {
    fn of(byte: u8) -> io::Result<Self> {
        [Self::Hello, Self::Job, Self::Reply, Self::Exec, Self::Message, Self::Going, Self::Failed]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
            .ok_or_else(|| invalid(format!("a frame of the unknown kind {byte:#04x}")))
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn header(kind: Kind, length: usize) -> io::Result<[u8; HEADER]> {
    if length > MAX_PAYLOAD {
        return Err(invalid(format!("a payload of {length} bytes is over the limit of {MAX_PAYLOAD}")));
    }
    let [a, b, c, d] = u32::try_from(length).expect("MAX_PAYLOAD fits u32").to_le_bytes();
    Ok([kind as u8, a, b, c, d])
}

fn parse(header: [u8; HEADER]) -> io::Result<(Kind, usize)> {
    let [kind, a, b, c, d] = header;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > MAX_PAYLOAD {
        return Err(invalid(format!("a frame announces {length} bytes, over the limit of {MAX_PAYLOAD}")));
    }
    Ok((Kind::of(kind)?, length))
}

/// Writes one frame.
pub(crate) fn write(mut to: impl Write, kind: Kind, payload: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(HEADER + payload.len());
    frame.extend_from_slice(&header(kind, payload.len())?);
    frame.extend_from_slice(payload);
    to.write_all(&frame)
}

/// Reads exactly one frame and not a byte more; `None` at an end of input between two frames.
pub(crate) fn read(mut from: impl Read) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; HEADER];
    let first = loop {
        match from.read(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    if first == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[first..])?;
    let (kind, length) = parse(head)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    Ok(Some((kind, payload)))
}

/// Writes one frame; not cancel-safe.
pub(crate) async fn send(mut to: impl AsyncWriteExt + Unpin, kind: Kind, payload: &[u8]) -> io::Result<()> {
    to.write_all(&header(kind, payload.len())?).await?;
    to.write_all(payload).await
}

/// Reads one frame; `None` at an end of input between two frames; not cancel-safe.
pub(crate) async fn receive(mut from: impl AsyncReadExt + Unpin) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut head = [0; HEADER];
    let first = from.read(&mut head).await?;
    if first == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[first..]).await?;
    let (kind, length) = parse(head)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload).await?;
    Ok(Some((kind, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_exactly_and_the_next_bytes_stay() {
        let mut wire = Vec::new();
        write(&mut wire, Kind::Job, b"one").expect("a vector takes it");
        write(&mut wire, Kind::Reply, b"").expect("a vector takes it");
        wire.extend_from_slice(b"rest");
        let mut from = wire.as_slice();
        assert_eq!(read(&mut from).expect("whole"), Some((Kind::Job, b"one".to_vec())));
        assert_eq!(read(&mut from).expect("whole"), Some((Kind::Reply, Vec::new())));
        assert_eq!(from, b"rest");
    }

    #[test]
    fn an_end_between_frames_is_no_error_and_one_inside_is() {
        assert_eq!(read([].as_slice()).expect("an end"), None);
        let cut = read([b'J', 3, 0, 0, 0, b'x'].as_slice()).expect_err("two bytes are missing");
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_hostile_length_or_kind_is_refused_before_anything_is_allocated() {
        for head in [[b'J', 255, 255, 255, 255], [b'?', 0, 0, 0, 0]] {
            assert_eq!(read(head.as_slice()).expect_err("refused").kind(), io::ErrorKind::InvalidData);
        }
    }
}
