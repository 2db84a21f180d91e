//! Decodes Zstandard (RFC 8878): concatenated and skippable frames.

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// Maximum window in bytes, which is the memory that a frame needs. The reference encoder uses 8
/// MiB at level 19, and 128 MiB at level 22 for a large file.
const MAX_WINDOW: u64 = 32 << 20;

/// Size of a skippable frame's header, in bytes.
const SKIPPABLE_HEADER: usize = 8;

/// Decodes all frames of a content.
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    frame: Option<StreamingDecoder<&'a [u8], FrameDecoder>>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Self {
        Self { rest: packed, frame: None }
    }

    /// Starts the next frame. Skips a skippable one.
    fn begin(&mut self) -> io::Result<()> {
        match StreamingDecoder::new_with_max_window_size(self.rest, MAX_WINDOW) {
            Ok(frame) => self.frame = Some(frame),
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => {
                let length = usize::try_from(length).map_err(io::Error::other)?;
                let skipped = SKIPPABLE_HEADER.saturating_add(length);
                let cut = || io::Error::other("a skippable frame is cut off");
                self.rest = self.rest.get(skipped..).ok_or_else(cut)?;
            }
            Err(error) => return Err(io::Error::other(error)),
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(frame) = self.frame.take() else { return Ok(()) };
        self.rest = frame.get_ref();
        let (given, found) =
            (frame.decoder.get_checksum_from_data(), frame.decoder.get_calculated_checksum());
        if given.is_some() && given != found {
            return Err(io::Error::other("the checksum of a frame is wrong"));
        }
        Ok(())
    }
}

impl Read for Decoder<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                match frame.read(buffer)? {
                    0 if buffer.is_empty() => return Ok(0),
                    0 => self.end()?,
                    read => return Ok(read),
                }
            }
            if self.rest.is_empty() && self.frame.is_none() {
                return Ok(0);
            }
            if self.frame.is_none() {
                self.begin()?;
            }
        }
    }
}
