//! Reads request bodies: decompresses them and limits their size and time.

use std::io;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tokio_util::io::StreamReader;

use super::code::Code;
use super::compressed::{self, LowDecompressionYield};
use super::headers;
use super::problem::Refusal;

/// Maximum size of a body that is copied on a serving thread, in bytes.
const MOST_COPIED_HERE: u64 = 1 << 20;

/// Reason why a request body was not read completely.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyReadError {
    /// The decompressed body exceeds this limit, in bytes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    /// The client sent the body too slowly.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// Decompression reads much input and yields little output.
    #[error("the body was not decompressed completely: {0}")]
    LowDecompressionYield(LowDecompressionYield),
    /// The zstd window is larger than any body may have.
    #[error(
        "its zstd window is larger than 8 MiB (RFC 9659); compress it with a window log of 23 or \
         less"
    )]
    LargeWindow,
    /// The client disconnected, or the encoding is invalid.
    #[error("the body cannot be read: {0}")]
    Broken(#[source] io::Error),
}

impl From<io::Error> for BodyReadError {
    fn from(error: io::Error) -> Self {
        if compressed::is_large_window(&error) {
            return Self::LargeWindow;
        }
        LowDecompressionYield::of(&error).map_or(Self::Broken(error), Self::LowDecompressionYield)
    }
}

impl From<BodyReadError> for Refusal {
    fn from(error: BodyReadError) -> Self {
        match error {
            BodyReadError::TooLarge(limit) => Self::new(
                Code::PayloadTooLarge,
                format!("The body exceeds {limit} bytes after decompression."),
            ),
            BodyReadError::TooSlow
            | BodyReadError::LowDecompressionYield(_)
            | BodyReadError::LargeWindow
            | BodyReadError::Broken(_) => {
                Self::new(Code::MalformedRequest, format!("Bad body: {error}."))
            }
        }
    }
}

/// Refuses a body with a media type other than `expected`. An absent body passes; the schema check
/// reports what is missing.
///
/// # Errors
/// 415.
pub(super) fn check_media_type(
    headers: &HeaderMap,
    body: &Body,
    expected: &str,
) -> Result<(), Refusal> {
    match headers::media_type(headers) {
        Some(sent) if sent == expected => Ok(()),
        None if body.is_end_stream() => Ok(()),
        _ => {
            let detail = format!("Content-Type: must be {expected}.");
            Err(Refusal::new(Code::UnsupportedMediaType, detail))
        }
    }
}

/// Time limits of a long request body: the longest pause and the minimum rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct BodyPace {
    begun: Instant,
    idle: Duration,
    least_rate: NonZeroU32,
}

impl BodyPace {
    /// Starts the time limits of a body. The client may wait at most `idle` between two pieces. The
    /// whole body may take `idle` plus its size divided by `least_rate` (bytes per second).
    pub(super) fn begin(idle: Duration, least_rate: NonZeroU32) -> Self {
        Self { begun: Instant::now(), idle, least_rate }
    }

    /// Returns the time until the next piece of the body must arrive, after `so_far` bytes.
    fn left(self, so_far: u64) -> Duration {
        let paid = Duration::from_secs(so_far) / self.least_rate.get();
        let left = (self.idle + paid).saturating_sub(self.begun.elapsed());
        left.min(self.idle)
    }
}

/// A request body of limited size that is decompressed while it is read.
pub(super) struct BodyReader {
    pieces: BoxStream<'static, Result<Bytes, BodyReadError>>,
    limit: u64,
    so_far: u64,
}

impl BodyReader {
    /// Prepares a request body for reading: chooses the decoder from `Content-Encoding`.
    ///
    /// # Errors
    /// 415 for an unknown encoding; 413 if the header announces a size above the limit.
    pub(super) fn open(headers: &HeaderMap, body: Body, limit: u64) -> Result<Self, Refusal> {
        let encoding = headers::single(headers, header::CONTENT_ENCODING.as_str())?;
        let encoding = encoding.unwrap_or("identity").trim().to_ascii_lowercase();
        let encoded = body.into_data_stream().map_err(io::Error::other);
        let pieces = match encoding.as_str() {
            "identity" | "" => {
                refuse_announced(headers, limit)?;
                encoded.map_err(BodyReadError::Broken).boxed()
            }
            "gzip" | "x-gzip" => {
                compressed::gzip(StreamReader::new(encoded)).map_err(BodyReadError::from).boxed()
            }
            "zstd" => {
                compressed::zstd(StreamReader::new(encoded)).map_err(BodyReadError::from).boxed()
            }
            other => {
                let detail = format!("Content-Encoding: {other:?} is not supported.");
                let hint = "Send the body uncompressed, or compressed with gzip or zstd.";
                return Err(Refusal::new(Code::UnsupportedMediaType, detail)
                    .hint(hint)
                    .header(header::ACCEPT_ENCODING, "gzip, zstd"));
            }
        };
        Ok(Self { pieces, limit, so_far: 0 })
    }

    /// Returns the next decompressed piece of the body, or `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BodyReadError> {
        let Some(piece) = self.pieces.next().await.transpose()? else { return Ok(None) };
        self.so_far += piece.len() as u64;
        if self.so_far > self.limit {
            Err(BodyReadError::TooLarge(self.limit))
        } else {
            Ok(Some(piece))
        }
    }

    /// Returns the next decompressed piece of the body if it arrives within the limits of `pace`;
    /// `None` at the end of the body.
    pub(super) async fn next_at(&mut self, pace: BodyPace) -> Result<Option<Bytes>, BodyReadError> {
        let time = pace.left(self.so_far);
        tokio::time::timeout(time, self.next()).await.unwrap_or(Err(BodyReadError::TooSlow))
    }

    /// Reads and decompresses the whole body within `time`.
    pub(super) async fn read(mut self, time: Duration) -> Result<Vec<u8>, BodyReadError> {
        let all = async {
            let Some(first) = self.next().await? else { return Ok(Vec::new()) };
            let mut pieces = Vec::new();
            while let Some(piece) = self.next().await? {
                pieces.push(piece);
            }
            if pieces.is_empty() {
                return Ok(Vec::from(first));
            }
            pieces.insert(0, first);
            joined(pieces, self.so_far).await
        };
        tokio::time::timeout(time, all).await.unwrap_or(Err(BodyReadError::TooSlow))
    }

    /// Returns the decompressed content as a body with the same size limit.
    pub(super) fn into_body(self) -> Body {
        Body::from_stream(futures::stream::try_unfold(self, |mut content| async move {
            Ok::<_, BodyReadError>(content.next().await?.map(|piece| (piece, content)))
        }))
    }
}

/// Joins pieces of `length` bytes in total. Long bodies are copied on a blocking thread.
async fn joined(pieces: Vec<Bytes>, length: u64) -> Result<Vec<u8>, BodyReadError> {
    if length <= MOST_COPIED_HERE {
        return Ok(pieces.concat());
    }
    let copied = tokio::task::spawn_blocking(move || pieces.concat()).await;
    copied.map_err(|error| BodyReadError::Broken(io::Error::other(error)))
}

/// Refuses a body whose `Content-Length` exceeds the limit, without reading it.
fn refuse_announced(headers: &HeaderMap, limit: u64) -> Result<(), Refusal> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if announced > limit { Err(BodyReadError::TooLarge(limit).into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use async_compression::tokio::bufread;
    use async_compression::tokio::write::GzipEncoder;
    use axum::http::{HeaderName, HeaderValue};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use assurance_core::turns::{LONGEST_TURN, longest_turn};

    const SECOND: Duration = Duration::from_secs(1);

    fn headers(encoding: &'static str) -> HeaderMap {
        let pair =
            (HeaderName::from_static("content-encoding"), HeaderValue::from_static(encoding));
        HeaderMap::from_iter([pair])
    }

    async fn compressed_as(encoding: &str, content: &[u8]) -> Vec<u8> {
        let mut compressed = Vec::new();
        let read = match encoding {
            "gzip" => bufread::GzipEncoder::new(content).read_to_end(&mut compressed).await,
            _ => bufread::ZstdEncoder::new(content).read_to_end(&mut compressed).await,
        };
        read.unwrap();
        compressed
    }

    #[tokio::test]
    async fn limits_count_decompressed_bytes() {
        let bomb = vec![b'x'; 1 << 20];
        for encoding in ["gzip", "zstd"] {
            let body = compressed_as(encoding, &bomb).await;
            assert!(body.len() < 10_000);
            let small = BodyReader::open(&headers(encoding), body.clone().into(), 1 << 20).unwrap();
            assert_eq!(small.read(SECOND).await.unwrap(), bomb);
            let large = BodyReader::open(&headers(encoding), body.into(), (1 << 20) - 1).unwrap();
            assert!(matches!(large.read(SECOND).await, Err(BodyReadError::TooLarge(_))));
        }
    }

    #[tokio::test]
    async fn a_body_of_members_without_content_is_refused() {
        for encoding in ["gzip", "zstd"] {
            let empty = compressed_as(encoding, b"").await;
            let few = [compressed_as(encoding, b"a").await, empty.repeat(100)].concat();
            let few = BodyReader::open(&headers(encoding), few.into(), 1 << 20).unwrap();
            assert_eq!(few.read(SECOND).await.unwrap(), b"a");
            let many = empty.repeat((1 << 20) / empty.len());
            let many = BodyReader::open(&headers(encoding), many.into(), 1 << 20).unwrap();
            let refused = many.read(SECOND).await;
            assert!(
                matches!(refused, Err(BodyReadError::LowDecompressionYield(_))),
                "{encoding}: {refused:?}"
            );
        }
    }

    /// Returns a Zstandard frame whose header declares a window of 2^`log` bytes, with `content` as
    /// an uncompressed block (RFC 8878, section 3.1.1).
    fn frame(log: u8, content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap();
        let block = ((length << 3) | 1).to_le_bytes();
        [&[0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3], &block[..3], content].concat()
    }

    #[tokio::test]
    async fn a_zstd_window_of_more_than_8_mib_is_refused() {
        let largest = [frame(23, b"a"), frame(10, b"b")].concat();
        let largest = BodyReader::open(&headers("zstd"), largest.into(), 100).unwrap();
        assert_eq!(largest.read(SECOND).await.unwrap(), b"ab");
        for log in [24, 27, 31, 41] {
            for body in [frame(log, b"a"), [frame(23, b"a"), frame(log, b"b")].concat()] {
                let body = BodyReader::open(&headers("zstd"), body.into(), 100).unwrap();
                let refused = body.read(SECOND).await;
                assert!(matches!(refused, Err(BodyReadError::LargeWindow)), "{log}: {refused:?}");
            }
        }
    }

    #[test]
    fn a_body_that_is_costly_to_decompress_leaves_turns_to_others() {
        const LARGE: usize = 64 << 20;
        let bodies = futures::executor::block_on(async {
            let zeros = vec![0; LARGE];
            [
                ("gzip", compressed_as("gzip", b"").await.repeat(1 << 18)),
                ("zstd", compressed_as("zstd", b"").await.repeat(1 << 18)),
                ("gzip", compressed_as("gzip", &zeros).await),
                ("zstd", compressed_as("zstd", &zeros).await),
            ]
        });
        for (encoding, body) in bodies {
            let content = BodyReader::open(&headers(encoding), body.into(), LARGE as u64).unwrap();
            let (_, longest) = longest_turn(content.read(60 * SECOND));
            assert!(longest < LONGEST_TURN, "{encoding}: {longest:?}");
        }
    }

    #[tokio::test]
    async fn content_that_cannot_be_compressed_or_is_flushed_often_is_read() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        let random: Vec<u8> = std::iter::repeat_with(&mut next).take(1 << 20).collect();
        let mut flushed = GzipEncoder::new(Vec::new());
        for line in random.chunks(8).take(40_000) {
            flushed.write_all(line).await.unwrap();
            flushed.flush().await.unwrap();
        }
        flushed.shutdown().await.unwrap();
        for body in [compressed_as("gzip", &random).await, flushed.into_inner()] {
            let content = BodyReader::open(&headers("gzip"), body.into(), 1 << 20).unwrap();
            assert!(random.starts_with(&content.read(20 * SECOND).await.unwrap()));
        }
    }

    #[tokio::test]
    async fn a_broken_encoding_is_told_from_an_unknown_one() {
        let broken = BodyReader::open(&headers("gzip"), "not gzip at all".into(), 100).unwrap();
        assert!(matches!(broken.read(SECOND).await, Err(BodyReadError::Broken(_))));
        assert!(BodyReader::open(&headers("br"), "x".into(), 100).is_err());
    }

    #[tokio::test]
    async fn a_body_that_stops_coming_is_given_up() {
        let stuck = Body::from_stream(futures::stream::pending::<Result<Bytes, io::Error>>());
        let content = BodyReader::open(&HeaderMap::new(), stuck, 100).unwrap();
        let time = Duration::from_millis(5);
        assert!(matches!(content.read(time).await, Err(BodyReadError::TooSlow)));
    }

    #[tokio::test]
    async fn a_body_that_comes_byte_by_byte_is_given_up() {
        let drops = futures::stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(b"x")));
        let drops = drops.then(|piece| async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            piece
        });
        let mut content =
            BodyReader::open(&HeaderMap::new(), Body::from_stream(drops), 1 << 20).unwrap();
        let pace = BodyPace::begin(SECOND / 4, NonZeroU32::new(8_192).unwrap());
        let whole = async {
            while content.next_at(pace).await?.is_some() {}
            Ok::<_, BodyReadError>(())
        };
        let given_up = tokio::time::timeout(20 * SECOND, whole).await.expect("an end");
        assert!(matches!(given_up, Err(BodyReadError::TooSlow)), "{given_up:?}");
    }
}
