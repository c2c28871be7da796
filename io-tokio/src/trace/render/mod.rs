//! `longshore trace render`: a trace as a picture.
//!
//! What is drawn is a [`Drawing`](drawing::Drawing), which knows nothing of traces and nothing of forms: [`svg`] makes a picture for documents of it, [`page`] a page to
//! look around in.

mod axis;
pub mod drawing;
pub mod look;
mod page;
mod stack;
mod svg;
mod text;

#[cfg(test)]
mod specimen;

pub use page::page;
pub use svg::svg;
pub use text::Text;

use crate::cli::Exit;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Render {
    /// The trace, or the directory of a flight recorder
    pub file: PathBuf,
}

/// x
pub fn render(asked: &Render, cwd: &Path, out: &mut impl Write, err: &mut impl Write) -> io::Result<Exit> {
    let _ = (asked, cwd, out, err);
    unreachable!()
}
