//! Decodes Zstandard (RFC 8878): concatenated and skippable frames.

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// Maximum window in bytes, which is the memory that a frame needs. The reference encoder uses 8
/// MiB at level 19, and 128 MiB at level 22 for a large file.
const MAX_WINDOW: u64 = 32 << 20;

/// Offset of the frame header descriptor in a frame, after the magic number, and its bits that
/// declare a content size: `Frame_Content_Size_flag` and `Single_Segment_flag`.
const DESCRIPTOR: usize = 4;
const HAS_CONTENT_SIZE: u8 = 0b1110_0000;

/// Size of a skippable frame's header, in bytes.
const SKIPPABLE_HEADER: usize = 8;

/// Decodes all Zstandard frames of a content.
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    frame: Option<StreamingDecoder<&'a [u8], FrameDecoder>>,
    /// Size of the current frame's content by its header; `None` if the header has none.
    declared: Option<u64>,
    /// Number of bytes of the current frame's content that were read.
    read: u64,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(packed: &'a [u8]) -> Self {
        Self { rest: packed, frame: None, declared: None, read: 0 }
    }

    /// Starts the next Zstandard frame. Skips a skippable one.
    fn begin(&mut self) -> io::Result<()> {
        match StreamingDecoder::new_with_max_window_size(self.rest, MAX_WINDOW) {
            Ok(frame) => {
                let descriptor = self.rest.get(DESCRIPTOR).copied().unwrap_or_default();
                let has_size = descriptor & HAS_CONTENT_SIZE != 0;
                self.declared = has_size.then(|| frame.decoder.content_size());
                self.read = 0;
                self.frame = Some(frame);
            }
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
        if self.declared.is_some_and(|declared| declared != self.read) {
            return Err(io::Error::other("a frame has another size than its header declares"));
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
                    read => {
                        self.read += read as u64;
                        return Ok(read);
                    }
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
