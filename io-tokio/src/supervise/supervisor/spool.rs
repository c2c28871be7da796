//! One output of the agent on its way from the pipe into its spool file.
//!
//! Not reading is the back-pressure: at the budget, and while the disk does not take more, the agent waits in its
//! own write. Nothing is dropped.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::time::{Duration, Instant};

/// From a refused write (a full disk) to the next try.
const RETRY: Duration = Duration::from_millis(500);

/// How much is read at a time, in bytes: what a pipe holds.
pub(super) const CHUNK: usize = 64 * 1024;

/// How much of a pipe is read at most after the last process of the run is gone, in bytes. Pipes are smaller; the
/// bound is for a stranger that was handed the pipe and goes on writing.
const FINAL_DRAIN: u64 = 16 * 1024 * 1024;

/// How long the final drain waits for a disk that takes no more.
const FINAL_WAIT: Duration = Duration::from_secs(10);

/// Smallest piece of a spool that is given back to the file system, in bytes.
#[cfg(target_os = "linux")]
const HOLE: u64 = 64 * 1024;

pub(super) struct Spool {
    pipe: Option<PipeReader>,
    file: File,
    written: u64,
    credit: u64,
    #[cfg(target_os = "linux")]
    punched: u64,
    budget: u64,
    /// Read from the pipe, refused by the disk.
    refused: Vec<u8>,
    retry_at: Option<Instant>,
}

impl Spool {
    /// `pipe` must not block; `file` is empty and open for appending.
    pub(super) fn new(pipe: PipeReader, file: File, budget: u64) -> Self {
        Self {
            pipe: Some(pipe),
            file,
            written: 0,
            credit: 0,
            #[cfg(target_os = "linux")]
            punched: 0,
            budget,
            refused: Vec::new(),
            retry_at: None,
        }
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// The pipe, while its bytes are wanted.
    pub(super) fn wanted(&self) -> Option<&PipeReader> {
        let room = self.written - self.credit < self.budget && self.refused.is_empty();
        self.pipe.as_ref().filter(|_| room)
    }

    /// When [`copy`](Self::copy) is to be called even if the pipe says nothing.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Moves what is there, at most one buffer full; true if there may be more.
    pub(super) fn copy(&mut self, buffer: &mut [u8]) -> bool {
        self.write_refused();
        if self.wanted().is_none() {
            return false;
        }
        self.read_into_file(buffer)
    }

    fn read_into_file(&mut self, buffer: &mut [u8]) -> bool {
        let Some(pipe) = &mut self.pipe else { return false };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                let bytes = buffer.get(..count).unwrap_or_default();
                let done = self.append(bytes);
                self.refused.extend_from_slice(bytes.get(done..).unwrap_or_default());
                return self.refused.is_empty();
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
        false
    }

    fn write_refused(&mut self) {
        if self.refused.is_empty() || self.retry_at.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.retry_at = None;
        let bytes = std::mem::take(&mut self.refused);
        let done = self.append(&bytes);
        self.refused = bytes.get(done..).unwrap_or_default().to_vec();
    }

    /// Gives how many bytes the disk took.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match self.file.write(rest) {
                Ok(count @ 1..) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => {
                    self.retry_at = Some(Instant::now() + RETRY);
                    break;
                }
            }
        }
        self.written += done as u64;
        done
    }

    /// Everything before `offset` was read for good: its space goes back.
    pub(super) fn acknowledge(&mut self, offset: u64) {
        self.credit = self.credit.max(offset.min(self.written));
        self.punch();
    }

    #[cfg(target_os = "linux")]
    fn punch(&mut self) {
        use rustix::fs::{FallocateFlags, fallocate};
        let until = self.credit - self.credit % HOLE;
        if until > self.punched {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // A file system that cannot do it keeps the bytes until the directory is removed.
            let _ = fallocate(&self.file, flags, self.punched, until - self.punched);
            self.punched = until;
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn punch(&mut self) {}

    /// Reads what the pipe still holds, now that nobody of the run can write any more. Gives how many bytes the
    /// disk refused to the end.
    pub(super) fn finish(&mut self, buffer: &mut [u8]) -> u64 {
        let until = Instant::now() + FINAL_WAIT;
        let limit = self.written + FINAL_DRAIN;
        loop {
            self.write_refused();
            if let Some(at) = self.retry_at {
                if at > until {
                    break;
                }
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                continue;
            }
            if self.written >= limit || !self.read_into_file(buffer) && self.refused.is_empty() {
                break;
            }
        }
        let mut lost = self.refused.len() as u64;
        while let Some(count) = self.pipe.as_mut().and_then(|pipe| pipe.read(buffer).ok()).filter(|n| *n > 0)
        {
            lost += count as u64;
            if lost >= FINAL_DRAIN {
                break;
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn spool(budget: u64) -> (Spool, io::PipeWriter, std::path::PathBuf, tempfile::TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("stdout");
        let file = File::options().append(true).create(true).open(&path).expect("created");
        let (reader, writer) = io::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&reader, true).expect("a pipe can be non-blocking");
        (Spool::new(reader, file, budget), writer, path, dir)
    }

    #[test]
    fn at_the_budget_the_pipe_is_not_read_until_credit_comes_and_nothing_is_dropped() {
        let (mut spool, mut writer, path, _dir) = spool(4);
        let mut buffer = [0; 3];
        writer.write_all(b"0123456789").expect("fits the pipe");
        assert!(spool.copy(&mut buffer) && spool.copy(&mut buffer));
        assert!(spool.wanted().is_none() && !spool.copy(&mut buffer));
        assert_eq!(spool.written(), 6);
        spool.acknowledge(3);
        assert!(spool.copy(&mut buffer));
        spool.acknowledge(1);
        assert!(spool.wanted().is_none(), "credit does not go back");
        drop(writer);
        assert_eq!(spool.finish(&mut buffer), 0);
        assert_eq!(std::fs::read(path).expect("readable"), b"0123456789");
    }

    #[test]
    fn a_writer_that_stays_does_not_hold_the_end() {
        let (mut spool, mut writer, path, _dir) = spool(1 << 20);
        writer.write_all(b"last words").expect("fits the pipe");
        assert_eq!(spool.finish(&mut [0; 64]), 0);
        assert_eq!(std::fs::read(path).expect("readable"), b"last words");
    }

    #[test]
    fn bug_46_what_a_full_disk_refuses_is_kept_and_told() {
        let Ok(full) = File::options().append(true).open("/dev/full") else { return };
        let (reader, mut writer) = io::pipe().expect("a pipe");
        rustix::io::ioctl_fionbio(&reader, true).expect("a pipe can be non-blocking");
        let mut spool = Spool::new(reader, full, 1 << 20);
        writer.write_all(b"0123456789").expect("fits the pipe");
        assert!(!spool.copy(&mut [0; 4]));
        assert!(spool.wanted().is_none() && spool.retry_at().is_some());
        assert!(!spool.copy(&mut [0; 4]), "not before the retry");
        assert_eq!((spool.written(), spool.refused.as_slice()), (0, b"0123".as_slice()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn acknowledged_space_is_given_back_and_the_length_stays() {
        let (mut spool, mut writer, path, _dir) = spool(1 << 30);
        let block = vec![7; CHUNK];
        let mut buffer = vec![0; CHUNK];
        for _ in 0..8 {
            writer.write_all(&block).expect("fits the pipe");
            while spool.copy(&mut buffer) {}
        }
        let before = std::fs::metadata(&path).expect("there").blocks();
        spool.acknowledge(8 * CHUNK as u64 - 1);
        let after = std::fs::metadata(&path).expect("there");
        assert_eq!(after.len(), 8 * CHUNK as u64);
        assert!(before == 0 || after.blocks() < before, "{before} blocks, then {}", after.blocks());
    }
}
