//! `longshore trace export`: a trace in the formats of other programs.

mod chrome;
mod lanes;
#[cfg(test)]
mod tests;

use super::destination::Destination;
use super::records;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(
    after_help = "Example: longshore trace export --chrome run.jsonl -o run.json\nExit code: 0, or 2 if the trace cannot be read or the file not be written."
)]
#[command(group(clap::ArgGroup::new("format").required(true)))]
pub struct Export {
    /// As trace events of Chrome, which ui.perfetto.dev shows: the only format so far, so it must be said
    #[arg(long, group = "format")]
    pub chrome: bool,
    /// The trace, the directory of a flight recorder or a tar archive of it, or - for standard input; may be packed by gzip or zstd
    pub file: PathBuf,
    /// Write to a file that is not there yet; compressed if its name ends in .gz. Default: standard output
    #[arg(short, long = "output", alias = "out", value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Writes a trace in another format, to a file or to `out`; what is wrong is written to `err`. Returns whether that was done.
///
/// # Errors
/// If `out` or `err` cannot be written to.
pub fn export(asked: &Export, cwd: &Path, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<bool> {
    let Some(story) = records::read(&asked.file, cwd, err)? else { return Ok(false) };
    let Some(path) = &asked.out else {
        let mut out = BufWriter::new(out);
        chrome::write(&story, &mut out)?;
        out.flush()?;
        return Ok(true);
    };
    let mut text = Vec::new();
    chrome::write(&story, &mut text)?;
    let written = Destination::create(Some(path), cwd).and_then(|mut file| {
        file.write(&text)?;
        file.finish()
    });
    match written {
        Ok(_) => Ok(true),
        Err(error) => {
            writeln!(err, "error: {error}")?;
            Ok(false)
        }
    }
}
