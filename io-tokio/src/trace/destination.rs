//! Where a command writes a trace: to a new file, whole or not at all, or to standard output.
//!
//! While it is written the file has no name, so that nothing is left of it however the process ends, also by `kill -9`.

mod unnamed;

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use unnamed::Unnamed;

/// Why a trace cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DestinationError {
    /// Nothing is ever written over.
    #[error("{} exists already: name a file that does not, or move it away", path.display())]
    Exists {
        /// The file, as it is named.
        path: PathBuf,
    },
    /// Nobody reads a trace off a screen.
    #[error("a trace is not for the screen: name a file with -o FILE, or send it on with a pipe")]
    Terminal,
    /// The file cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    File {
        /// The file, as it is named.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Who reads standard output has gone, or its disk is full.
    #[error("standard output cannot be written: {0}")]
    Stdout(#[source] io::Error),
}

/// A trace that is being written. One that is dropped before [`finish`](Self::finish) leaves no file.
#[derive(Debug)]
pub struct Destination {
    form: Form,
    file: Option<Named>,
}

/// A file that is to be.
#[derive(Debug)]
struct Named {
    /// Where it goes.
    path: PathBuf,
    /// What it was called by who asked for it, for people.
    name: PathBuf,
}

#[derive(Debug)]
enum Form {
    Stdout(BufWriter<Stdout>),
    Plain(BufWriter<Unnamed>),
    Gzip(GzEncoder<BufWriter<Unnamed>>),
}

impl Destination {
    /// Begins a new file, mode 0600, compressed by gzip if its name ends in `.gz`; without one standard output is written. A relative name is below
    /// `cwd`, and messages have it as it is given.
    ///
    /// # Errors
    /// The file is there already or cannot be made, or standard output is a terminal.
    pub fn create(name: Option<&Path>, cwd: &Path) -> Result<Self, DestinationError> {
        let Some(name) = name else {
            if io::stdout().is_terminal() {
                return Err(DestinationError::Terminal);
            }
            return Ok(Self { form: Form::Stdout(BufWriter::new(io::stdout())), file: None });
        };
        let path = cwd.join(name);
        // Told before the work is done; that it stays so is seen to at the end.
        if path.symlink_metadata().is_ok() {
            return Err(DestinationError::Exists { path: name.to_owned() });
        }
        let failed = |error| DestinationError::File { path: name.to_owned(), error };
        let file = BufWriter::new(Unnamed::beside(&path).map_err(failed)?);
        let form = match path.extension() {
            Some(end) if end.eq_ignore_ascii_case("gz") => {
                Form::Gzip(GzEncoder::new(file, Compression::default()))
            }
            _ => Form::Plain(file),
        };
        Ok(Self { form, file: Some(Named { path, name: name.to_owned() }) })
    }

    /// What it is called, for people.
    pub fn name(&self) -> String {
        self.file
            .as_ref()
            .map_or_else(|| "standard output".to_owned(), |file| file.name.display().to_string())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk refuses, or who reads standard output has gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), DestinationError> {
        let written = match &mut self.form {
            Form::Stdout(out) => out.write_all(bytes),
            Form::Plain(file) => file.write_all(bytes),
            Form::Gzip(file) => file.write_all(bytes),
        };
        written.map_err(|error| failed(self.file.as_ref(), error))
    }

    /// Puts the file in its place, and says what it is called.
    ///
    /// # Errors
    /// The disk refuses, or somebody else has made a file of this name meanwhile.
    pub fn finish(self) -> Result<String, DestinationError> {
        let (name, named) = (self.name(), self.file);
        let failed = |error| failed(named.as_ref(), error);
        let whole = |file: BufWriter<Unnamed>| file.into_inner().map_err(io::IntoInnerError::into_error);
        let file = match self.form {
            Form::Stdout(mut out) => {
                out.flush().map_err(failed)?;
                return Ok(name);
            }
            Form::Plain(file) => whole(file),
            Form::Gzip(file) => file.finish().and_then(whole),
        };
        let file = file.map_err(failed)?;
        let Some(named) = &named else { return Ok(name) };
        match file.name(&named.path) {
            Ok(()) => Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(DestinationError::Exists { path: named.name.clone() })
            }
            Err(error) => Err(failed(error)),
        }
    }
}

fn failed(file: Option<&Named>, error: io::Error) -> DestinationError {
    match file {
        Some(file) => DestinationError::File { path: file.name.clone(), error },
        None => DestinationError::Stdout(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_there_when_it_is_whole_and_is_private() {
        let dir = tempfile::tempdir().expect("temp");
        let path = dir.path().join("run.jsonl");
        let mut output = Destination::create(Some(&path), Path::new("/")).expect("begun");
        output.write(b"line\n").expect("written");
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 0, "not yet, under any name");
        output.finish().expect("finished");
        assert_eq!(fs::read(&path).expect("there"), b"line\n");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);

        drop(Destination::create(Some(Path::new("other")), dir.path()).expect("begun"));
        assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1, "what was given up left nothing");
    }

    #[test]
    fn a_name_that_ends_in_gz_is_compressed() {
        let dir = tempfile::tempdir().expect("temp");
        let path = dir.path().join("run.jsonl.gz");
        let mut output = Destination::create(Some(&path), Path::new("/")).expect("begun");
        output.write(b"line\n").expect("written");
        output.finish().expect("finished");
        let mut text = String::new();
        GzDecoder::new(File::open(&path).expect("there")).read_to_string(&mut text).expect("gzip");
        assert_eq!(text, "line\n");
    }

    #[test]
    fn nothing_is_written_over() {
        let dir = tempfile::tempdir().expect("temp");
        let path = dir.path().join("run.jsonl");
        let late = Destination::create(Some(&path), Path::new("/")).expect("begun");
        fs::write(&path, "mine").expect("written");
        for refused in [late.finish().map(drop), Destination::create(Some(&path), Path::new("/")).map(drop)] {
            let text = refused.expect_err("it is there").to_string();
            assert!(text.contains("run.jsonl exists already"), "{text}");
        }
        assert_eq!(fs::read(&path).expect("there"), b"mine");
        let nowhere = Destination::create(Some(Path::new("none/x")), dir.path()).expect_err("no directory");
        assert!(nowhere.to_string().starts_with("none/x cannot be written"), "{nowhere}");
    }

    #[test]
    fn a_file_is_called_as_it_was_named() {
        let dir = tempfile::tempdir().expect("temp");
        let create = || Destination::create(Some(Path::new("./run.jsonl")), dir.path());
        let (first, late) = (create().expect("begun"), create().expect("begun"));
        assert_eq!(first.name(), "./run.jsonl");
        assert_eq!(first.finish().expect("finished"), "./run.jsonl");
        assert!(dir.path().join("run.jsonl").is_file());
        for refused in [late.finish().map(drop), create().map(drop)] {
            let text = refused.expect_err("it is there").to_string();
            assert!(text.starts_with("./run.jsonl exists already"), "{text}");
        }
    }
}
