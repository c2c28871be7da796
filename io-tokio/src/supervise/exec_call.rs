//! What the helper becomes. It travels on a socket only: arguments and environment hold secrets.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A program with all it gets. The environment is complete: nothing else is inherited.
#[derive(PartialEq, Eq)]
pub(crate) struct ExecCall {
    pub(crate) program: PathBuf,
    pub(crate) cwd: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
}

impl ExecCall {
    /// The call as length-prefixed byte strings: program, cwd, number of arguments, arguments, names and values.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.program.as_os_str().as_bytes());
        put(&mut out, self.cwd.as_os_str().as_bytes());
        put(&mut out, &(self.args.len() as u64).to_le_bytes());
        for arg in &self.args {
            put(&mut out, arg.as_bytes());
        }
        for (name, value) in &self.env {
            put(&mut out, name.as_bytes());
            put(&mut out, value.as_bytes());
        }
        out
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub(crate) fn decode(mut bytes: &[u8]) -> io::Result<Self> {
        let from = &mut bytes;
        let program = PathBuf::from(take(from)?);
        let cwd = PathBuf::from(take(from)?);
        let count = take(from)?.into_vec().try_into().map_err(|_| broken())?;
        let args = (0..u64::from_le_bytes(count)).map(|_| take(from)).collect::<io::Result<_>>()?;
        let mut env = Vec::new();
        while !from.is_empty() {
            env.push((take(from)?, take(from)?));
        }
        Ok(Self { program, cwd, args, env })
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take(from: &mut &[u8]) -> io::Result<OsString> {
    let (length, rest) = from.split_first_chunk::<8>().ok_or_else(broken)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| broken())?;
    let (bytes, rest) = rest.split_at_checked(length).ok_or_else(broken)?;
    *from = rest;
    Ok(OsString::from_vec(bytes.to_vec()))
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the description of the program to start is cut short")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> ExecCall {
        ExecCall {
            program: "/bin/agent".into(),
            cwd: "/tmp/work dir".into(),
            args: vec!["".into(), "-p".into(), OsString::from_vec(vec![0xff, b'\n'])],
            env: vec![("A".into(), "".into()), ("B".into(), "x=y".into())],
        }
    }

    #[test]
    fn a_call_survives_the_wire_with_empty_and_non_utf8_texts() {
        assert!(ExecCall::decode(&call().encode()).expect("whole") == call());
    }

    #[test]
    fn a_call_that_is_cut_inside_a_field_is_an_error() {
        let whole = call().encode();
        let (start, _) = whole.split_at(whole.len() - 1);
        assert!(ExecCall::decode(start).is_err());
        assert!(ExecCall::decode(&[255; 8]).is_err());
        assert!(ExecCall::decode(&[]).is_err());
    }
}
