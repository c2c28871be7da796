//! The story of a trace, for the commands that tell of it.

use super::input::Input;
use longshore_core::story::{Builder, Story};
use longshore_core::trace::Record;
use std::io::{self, Write};
use std::path::Path;

/// The story of what records tell, in their order. The first one is a header.
pub(super) fn story(records: impl IntoIterator<Item = Record>) -> Story {
    let mut builder = Builder::default();
    records.into_iter().for_each(|record| builder.record(&record));
    builder.finish()
}

/// The story of a trace; relative paths are below `cwd`. If it cannot be read, `err` says why. Of one that is damaged, what can be read is told,
/// and `err` says what could not.
///
/// # Errors
/// If `err` cannot be written to.
pub(super) fn read(file: &Path, cwd: &Path, err: &mut dyn Write) -> io::Result<Option<Story>> {
    let mut input = match Input::open(file, cwd) {
        Ok(input) => input,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(None);
        }
    };
    let story = story(&mut input);
    input.say(err)?;
    Ok(Some(story))
}
