//! A point that a scripted agent, or whoever reads or writes a file, does not pass before the test lets it.

use longshore_io_tokio::agent_double::Step;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A FIFO: opening it blocks until the other side is opened too.
#[derive(Debug)]
pub struct Gate {
    path: PathBuf,
}

impl Gate {
    /// Makes the FIFO.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a FIFO can be made");
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The step of a script that waits here.
    pub fn wait(&self) -> Step {
        Step::Write { path: self.path.display().to_string(), text: "passed\n".into() }
    }

    /// Lets a writer pass, now or when it comes, for as long as what is given back lives.
    #[must_use = "the gate closes when this is dropped"]
    pub fn open(&self) -> File {
        // For both, which never blocks.
        File::options().read(true).write(true).open(&self.path).expect("the FIFO is there")
    }

    /// Lets writers pass, and waits until one has; the gate stays open for as long as what is given back lives. `None` if nobody
    /// came in time.
    pub async fn passed(&self, within: Duration) -> Option<File> {
        let open = self.open();
        let limit = Timespec::try_from(within).expect("a time that a person would wait");
        let wait = move || {
            let came = poll(&mut [PollFd::new(&open, PollFlags::IN)], Some(&limit));
            came.is_ok_and(|ready| ready > 0).then_some(open)
        };
        tokio::task::spawn_blocking(wait).await.expect("no panic")
    }

    /// Whether somebody has it open to read at this moment.
    pub fn has_reader(&self) -> bool {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::open(&self.path, flags, Mode::empty()) {
            Ok(_) => true,
            Err(rustix::io::Errno::NXIO) => false,
            Err(error) => panic!("{} cannot be asked for its readers: {error}", self.path.display()),
        }
    }

    /// Waits until somebody opens it to read, and keeps the reader waiting for what will be written.
    pub async fn reached(&self) -> HeldReader {
        let path = self.path.clone();
        let opened = tokio::task::spawn_blocking(move || File::options().write(true).open(path)).await;
        HeldReader(opened.expect("no panic").expect("the FIFO is there"))
    }

    /// Puts an ordinary file in its place.
    pub fn replace_by_file(&self, content: &str) {
        std::fs::remove_file(&self.path).expect("the FIFO is there");
        std::fs::write(&self.path, content).expect("its folder is there");
    }
}

/// A reader that waits. Dropped, it reads the end of the file.
#[derive(Debug)]
pub struct HeldReader(File);

impl HeldReader {
    /// Waits until nobody reads any more; whether that was so in time.
    pub async fn forsaken(self, within: Duration) -> bool {
        let limit = Timespec::try_from(within).expect("a time that a person would wait");
        let wait = move || {
            // A FIFO without a reader is an error to whoever would write; that is told without being asked for.
            let mut polled = [PollFd::new(&self.0, PollFlags::empty())];
            poll(&mut polled, Some(&limit)).is_ok_and(|ready| ready > 0)
        };
        tokio::task::spawn_blocking(wait).await.expect("no panic")
    }

    /// Gives the reader this, and then the end of the file.
    pub fn feed(mut self, content: &str) {
        self.0.write_all(content.as_bytes()).expect("somebody reads");
    }
}
