//! Unpacks a stream of zstd frames, and of one that is cut off what came.

use super::{cut_off, damaged, of_layer, told};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::error::Error;
use std::io::{self, BufRead, Read};

/// Largest window that is decoded, in bytes: that of the highest level of the usual tools.
const MAX_WINDOW: u64 = 128 * 1024 * 1024;

/// The packer, in messages.
const NAME: &str = "zstd";

/// A last block without content, and room for a checksum: after it the decoder gives out what it has.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

pub(super) struct Zstd<R> {
    decoder: FrameDecoder,
    source: R,
    /// Whether a frame is being read.
    inside: bool,
    failed: Option<io::Error>,
    over: bool,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self { decoder, source, inside: false, failed: None, over: false }
    }

    /// Begins the next frame, or sees that there is none.
    fn frame(&mut self) -> io::Result<()> {
        if self.source.fill_buf()?.is_empty() {
            self.over = true;
            return Ok(());
        }
        match self.decoder.reset(&mut self.source) {
            Ok(()) => self.inside = true,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length, ..
            })) => {
                let skipped = io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                if skipped < u64::from(length) {
                    return Err(cut_off(NAME));
                }
            }
            Err(error) => return Err(in_words(&error)),
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.inside && self.decoder.can_collect() > 0 {
                return self.decoder.read(to);
            }
            if let Some(error) = self.failed.take() {
                (self.inside, self.over) = (false, true);
                return Err(error);
            }
            if self.over || to.is_empty() {
                return Ok(0);
            }
            if !self.inside || self.decoder.is_finished() {
                self.inside = false;
                self.frame()?;
            } else if let Err(error) =
                self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
            {
                self.failed = Some(in_words(&error));
                // It keeps a window of what it has for the blocks to come; none come any more.
                let _ =
                    self.decoder.decode_blocks(LAST_BLOCK.as_slice(), BlockDecodingStrategy::UptoBlocks(1));
            }
        }
    }
}

/// The decoder's error for people: it says where in its tables something does not fit, which helps nobody.
fn in_words(error: &FrameDecoderError) -> io::Error {
    let invalid = |why: String| told(io::ErrorKind::InvalidData, why);
    match error {
        FrameDecoderError::WindowSizeTooBig { requested, max } => invalid(format!(
            "the zstd data needs a window of {} MiB, and {} MiB is the most (unpack it first, by zstd -d --long=31)",
            requested.div_ceil(1 << 20),
            max >> 20
        )),
        FrameDecoderError::DictNotProvided { dict_id } => {
            invalid(format!("the zstd data needs dictionary {dict_id} (unpack it first, by zstd -d -D FILE)"))
        }
        FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_)) => {
            invalid("what follows is no zstd data".to_owned())
        }
        error => of_source(error),
    }
}

/// By what the source said, if that is at the bottom of it.
fn of_source(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if let Some(told) = of_layer(io) {
                return told;
            }
            return match io.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None if io.kind() == io::ErrorKind::UnexpectedEof => cut_off(NAME),
                None => damaged(NAME),
            };
        }
        cause = error.source();
    }
    damaged(NAME)
}
