//! Parses content as a stream that is too large for an area's memory, and checks its size, nesting
//! and encoding.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};

use crate::nesting::NestingScanner;
use crate::packing::{self, UnpackError};

/// Number of bytes read at a time from the unpacked stream.
const PIECE_BYTES: usize = 64 << 10;

/// Limits of content that is unpacked and read as a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// Maximum size of the unpacked content, in bytes.
    pub bytes: u64,
    /// Maximum nesting of arrays and objects; `None` means no limit.
    pub depth: Option<usize>,
    /// Whether the content must be UTF-8.
    pub is_text: bool,
}

/// Result of a stream that was read to its end within its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedStream<T> {
    /// Value that the parser of the stream returned.
    pub result: T,
    /// Size of the unpacked content, in bytes.
    pub bytes: u64,
    /// Depth of the deepest nested array or object that the stream had.
    pub depth: usize,
}

/// Reason why a stream cannot be read: it violates a limit, is not UTF-8 or cannot be unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The content exceeds this size, in bytes.
    TooLarge(u64),
    /// The content is nested deeper than this number of arrays and objects.
    TooDeep(usize),
    /// The byte at this offset is not valid UTF-8.
    NotUtf8(u64),
    /// The content cannot be unpacked.
    Packing(UnpackError),
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(most) => write!(f, "Unpacked it has more than {most} bytes."),
            Self::TooDeep(most) => write!(f, "Nests deeper than {most} levels."),
            Self::NotUtf8(at) => write!(f, "Byte {at} is not UTF-8."),
            Self::Packing(error) => f.write_str(&error.detail),
        }
    }
}

/// Calls a parser with unpacked JSON, without the byte order mark. Reads the stream to its end, so
/// that all of it is checked.
pub fn parse<T>(
    packed: &[u8],
    limits: StreamLimits,
    observe: impl FnMut(&[u8]),
    parse: impl FnOnce(&mut dyn Read) -> T,
) -> Result<ParsedStream<T>, StreamError> {
    let unpacked = packing::read(packed, |reader| {
        let mut watched = LimitedReader::new(reader, limits, observe);
        let text = without_byte_order_mark(&mut watched);
        let result = parse(&mut BufReader::with_capacity(PIECE_BYTES, text));
        watched.drain()?;
        Ok(ParsedStream { result, bytes: watched.bytes, depth: watched.scan.deepest() })
    });
    unpacked.map_err(StreamError::Packing)?.result
}

/// Reader that checks the limits of the bytes that pass through it.
struct LimitedReader<R, F> {
    source: R,
    limits: StreamLimits,
    observe: F,
    bytes: u64,
    scan: NestingScanner,
    encoding: Utf8Checker,
    breach: Option<StreamError>,
}

impl<R: Read, F: FnMut(&[u8])> LimitedReader<R, F> {
    fn new(source: R, limits: StreamLimits, observe: F) -> Self {
        let (scan, encoding) = (NestingScanner::default(), Utf8Checker::default());
        Self { source, limits, observe, bytes: 0, scan, encoding, breach: None }
    }

    /// Reads the rest of the stream and returns the violated limit.
    fn drain(&mut self) -> Result<(), StreamError> {
        let mut piece = vec![0; PIECE_BYTES];
        while self.breach.is_none() {
            match self.read(&mut piece) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    let damaged = || StreamError::Packing(UnpackError::damaged(error));
                    return Err(self.breach.take().unwrap_or_else(damaged));
                }
            }
        }
        match self.breach.take() {
            Some(breach) => Err(breach),
            None if !self.encoding.is_whole() => Err(StreamError::NotUtf8(self.bytes)),
            None => Ok(()),
        }
    }

    fn check(&mut self, piece: &[u8]) -> Option<StreamError> {
        let begin = self.bytes;
        self.bytes += piece.len() as u64;
        if self.bytes > self.limits.bytes {
            return Some(StreamError::TooLarge(self.limits.bytes));
        }
        self.scan.read(piece);
        let too_deep = self.limits.depth.filter(|most| self.scan.deepest() > *most);
        if too_deep.is_some() || !self.limits.is_text {
            return too_deep.map(StreamError::TooDeep);
        }
        let wrong = self.encoding.read(piece).err()?;
        Some(StreamError::NotUtf8(begin + wrong as u64))
    }
}

impl<R: Read, F: FnMut(&[u8])> Read for LimitedReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.breach.is_some() {
            return Err(io::Error::other("the stream is not read any further"));
        }
        let read = match self.source.read(buffer) {
            Ok(read) => read,
            Err(error) => {
                let text = error.to_string();
                self.breach = Some(StreamError::Packing(UnpackError::damaged(error)));
                return Err(io::Error::other(text));
            }
        };
        let piece = buffer.get(..read).unwrap_or_default();
        self.breach = self.check(piece);
        match &self.breach {
            Some(breach) => Err(io::Error::other(breach.to_string())),
            None => {
                (self.observe)(piece);
                Ok(read)
            }
        }
    }
}

/// Returns a reader of the content after a UTF-8 byte order mark, if there is one.
fn without_byte_order_mark<R: Read, F: FnMut(&[u8])>(
    source: &mut LimitedReader<R, F>,
) -> impl Read {
    let mut head = Vec::new();
    // After an error, each further read of the source returns one too.
    let _ = source.by_ref().take(3).read_to_end(&mut head);
    if head == b"\xef\xbb\xbf" {
        head.clear();
    }
    Cursor::new(head).chain(source)
}

/// Checks UTF-8 in pieces that may end within a character.
#[derive(Debug, Default)]
struct Utf8Checker {
    /// Bytes of an incomplete character at the end of the last piece.
    pending: Vec<u8>,
}

impl Utf8Checker {
    /// Checks the next piece of the text. Returns the offset of an invalid byte in the piece.
    fn read(&mut self, piece: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        while let Some(byte) = piece.get(at).filter(|_| !self.pending.is_empty()) {
            self.pending.push(*byte);
            at += 1;
            match std::str::from_utf8(&self.pending) {
                Ok(_) => self.pending.clear(),
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(at - 1),
            }
        }
        let rest = piece.get(at..).unwrap_or_default();
        match std::str::from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_some() => Err(at + error.valid_up_to()),
            Err(error) => {
                self.pending.extend(rest.iter().skip(error.valid_up_to()));
                Ok(())
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.pending.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn gzip(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).expect("packed");
        encoder.finish().expect("packed")
    }

    fn read(content: &[u8], limits: StreamLimits) -> Result<Vec<u8>, StreamError> {
        let mut observed = 0;
        let read = parse(
            &gzip(content),
            limits,
            |piece| observed += piece.len(),
            |reader| {
                let mut read = Vec::new();
                reader.read_to_end(&mut read).map(|_| read)
            },
        )?;
        assert_eq!((observed, read.bytes), (content.len(), content.len() as u64));
        Ok(read.result.expect("no breach"))
    }

    const NONE: StreamLimits = StreamLimits { bytes: 1 << 20, depth: None, is_text: true };

    #[test]
    fn the_bounds_hold() {
        let text = "[[1, \"é[\"]]".as_bytes();
        assert_eq!(read(text, NONE).as_deref(), Ok(text));
        assert_eq!(read(text, StreamLimits { bytes: 5, ..NONE }), Err(StreamError::TooLarge(5)));
        assert_eq!(
            read(text, StreamLimits { depth: Some(1), ..NONE }),
            Err(StreamError::TooDeep(1))
        );
        assert!(read(text, StreamLimits { depth: Some(2), ..NONE }).is_ok());
        assert_eq!(read(b"ab\xff", NONE), Err(StreamError::NotUtf8(2)));
        assert_eq!(read(b"ab\xc3", NONE), Err(StreamError::NotUtf8(3)));
        assert!(read(b"ab\xff", StreamLimits { is_text: false, ..NONE }).is_ok());
    }

    #[test]
    fn what_a_parser_leaves_is_watched_too() {
        let mut content = b"{}".to_vec();
        content.extend(vec![b' '; 200_000]);
        content.push(0xff);
        let first = |reader: &mut dyn Read| reader.read(&mut [0; 2]).expect("read");
        let packed = gzip(&content);
        assert_eq!(parse(&packed, NONE, |_| {}, first), Err(StreamError::NotUtf8(200_002)));
        content.pop();
        let packed = gzip(&content);
        let cut = &packed[..packed.len() - 4];
        assert!(matches!(parse(cut, NONE, |_| {}, first), Err(StreamError::Packing(_))));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        let mut text = Vec::new();
        let packed = gzip(b"\xef\xbb\xbf{}");
        let read = |reader: &mut dyn Read| reader.read_to_end(&mut text).map(drop);
        assert!(parse(&packed, NONE, |_| {}, read).expect("a stream").result.is_ok());
        assert_eq!(text, b"{}");
    }

    proptest! {
        #[test]
        fn text_in_pieces_is_utf8_as_a_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..40), text in "\\PC{0,20}", cut in 1..7_usize,
        ) {
            for whole in [bytes, text.into_bytes()] {
                let mut encoding = Utf8Checker::default();
                let good = whole.chunks(cut).all(|piece| encoding.read(piece).is_ok());
                prop_assert_eq!(good && encoding.is_whole(), std::str::from_utf8(&whole).is_ok());
            }
        }
    }
}
