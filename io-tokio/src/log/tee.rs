//! One writer that is two.

use std::io::{self, Write};

/// Writes everything to both; that one of them fails is no reason not to write to the other.
pub struct Tee<A, B>(pub A, pub B);

impl<A: Write, B: Write> Write for Tee<A, B> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let first = self.0.write_all(bytes);
        self.1.write_all(bytes).or(first).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let first = self.0.flush();
        self.1.flush().or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_broken_writer_does_not_silence_the_other() {
        let mut kept = Vec::new();
        Tee(Broken, &mut kept).write_all(b"a").expect("written to one");
        Tee(&mut kept, Broken).write_all(b"b").expect("written to one");
        assert_eq!(kept, b"ab");
        assert!(Tee(Broken, Broken).write_all(b"c").is_err());
    }
}
