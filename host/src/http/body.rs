//! Request bodies: decompressed, bounded in size and time, and refused before
//! a byte too many is kept.

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
use super::compressed::{self, Unproductive};
use super::headers;
use super::problem::Refusal;

/// Bytes of a body that a serving thread copies.
const MOST_COPIED_HERE: u64 = 1 << 20;

/// Why a body did not arrive whole.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyFault {
    /// More bytes, once decompressed, than the operation takes.
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    /// The client was too slow.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// Decompressing it costs much and yields little.
    #[error("the body is not decompressed to the end: {0}")]
    Unproductive(Unproductive),
    /// The client went away, or the encoding is broken.
    #[error("the body cannot be read: {0}")]
    Broken(#[source] io::Error),
}

impl From<io::Error> for BodyFault {
    fn from(error: io::Error) -> Self {
        Unproductive::of(&error).map_or(Self::Broken(error), Self::Unproductive)
    }
}

impl From<BodyFault> for Refusal {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::TooLarge(limit) => Self::new(
                Code::PayloadTooLarge,
                format!("The body may have {limit} bytes, decompressed, and has more."),
            ),
            BodyFault::TooSlow | BodyFault::Unproductive(_) | BodyFault::Broken(_) => {
                Self::new(Code::MalformedRequest, format!("Bad body: {fault}."))
            }
        }
    }
}

/// Refuses a body of another media type than this. A body that is not there is
/// not of another type: what is missing in it is told with its shape.
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

/// How slowly a body may come that takes long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    begun: Instant,
    idle: Duration,
    least_rate: NonZeroU32,
}

impl Pace {
    /// From now on: no longer than `idle` between two pieces, and no longer
    /// altogether than `idle` and what so many bytes take at the least rate,
    /// in bytes per second.
    pub(super) fn begin(idle: Duration, least_rate: NonZeroU32) -> Self {
        Self { begun: Instant::now(), idle, least_rate }
    }

    /// How long the next piece may take where so many bytes have come.
    fn left(self, so_far: u64) -> Duration {
        let paid = Duration::from_secs(so_far) / self.least_rate.get();
        let left = (self.idle + paid).saturating_sub(self.begun.elapsed());
        left.min(self.idle)
    }
}

/// A body being read, decompressed on the way.
pub(super) struct Content {
    pieces: BoxStream<'static, Result<Bytes, BodyFault>>,
    limit: u64,
    so_far: u64,
}

impl Content {
    /// Opens a body.
    ///
    /// # Errors
    /// 415 for an encoding that is not known; 413 where the header already
    /// says that it is too large.
    pub(super) fn open(headers: &HeaderMap, body: Body, limit: u64) -> Result<Self, Refusal> {
        let encoding = headers::single(headers, header::CONTENT_ENCODING.as_str())?;
        let encoding = encoding.unwrap_or("identity").trim().to_ascii_lowercase();
        let encoded = body.into_data_stream().map_err(io::Error::other);
        let pieces = match encoding.as_str() {
            "identity" | "" => {
                refuse_announced(headers, limit)?;
                encoded.map_err(BodyFault::Broken).boxed()
            }
            "gzip" | "x-gzip" => {
                compressed::gzip(StreamReader::new(encoded)).map_err(BodyFault::from).boxed()
            }
            "zstd" => compressed::zstd(StreamReader::new(encoded)).map_err(BodyFault::from).boxed(),
            other => {
                let detail = format!("Content-Encoding: {other:?} is not understood here.");
                let hint = "Send the body as it is, or compressed with gzip or zstd.";
                return Err(Refusal::new(Code::UnsupportedMediaType, detail).hint(hint));
            }
        };
        Ok(Self { pieces, limit, so_far: 0 })
    }

    /// The next piece; nothing at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, BodyFault> {
        let Some(piece) = self.pieces.next().await.transpose()? else { return Ok(None) };
        self.so_far += piece.len() as u64;
        if self.so_far > self.limit {
            Err(BodyFault::TooLarge(self.limit))
        } else {
            Ok(Some(piece))
        }
    }

    /// The next piece, if the body keeps up.
    pub(super) async fn next_at(&mut self, pace: Pace) -> Result<Option<Bytes>, BodyFault> {
        let time = pace.left(self.so_far);
        tokio::time::timeout(time, self.next()).await.unwrap_or(Err(BodyFault::TooSlow))
    }

    /// Everything, if it comes within this time.
    pub(super) async fn read(mut self, time: Duration) -> Result<Vec<u8>, BodyFault> {
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
        tokio::time::timeout(time, all).await.unwrap_or(Err(BodyFault::TooSlow))
    }

    /// The pieces as a body again, still bounded.
    pub(super) fn into_body(self) -> Body {
        Body::from_stream(futures::stream::try_unfold(self, |mut content| async move {
            Ok::<_, BodyFault>(content.next().await?.map(|piece| (piece, content)))
        }))
    }
}

/// Copies pieces of so many bytes into one. Much is copied off the serving
/// threads.
async fn joined(pieces: Vec<Bytes>, length: u64) -> Result<Vec<u8>, BodyFault> {
    if length <= MOST_COPIED_HERE {
        return Ok(pieces.concat());
    }
    let copied = tokio::task::spawn_blocking(move || pieces.concat()).await;
    copied.map_err(|error| BodyFault::Broken(io::Error::other(error)))
}

/// Does not wait for what is too large by its own account.
fn refuse_announced(headers: &HeaderMap, limit: u64) -> Result<(), Refusal> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    if announced > limit { Err(BodyFault::TooLarge(limit).into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use async_compression::tokio::write::{GzipEncoder, ZstdEncoder};
    use axum::http::{HeaderName, HeaderValue};
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::turns::{LONGEST_TURN, longest_turn};

    const SECOND: Duration = Duration::from_secs(1);

    fn headers(encoding: &'static str) -> HeaderMap {
        let pair =
            (HeaderName::from_static("content-encoding"), HeaderValue::from_static(encoding));
        HeaderMap::from_iter([pair])
    }

    async fn gzipped(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzipEncoder::new(Vec::new());
        encoder.write_all(content).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder.into_inner()
    }

    async fn zstded(content: &[u8]) -> Vec<u8> {
        let mut encoder = ZstdEncoder::new(Vec::new());
        encoder.write_all(content).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder.into_inner()
    }

    async fn compressed_as(encoding: &str, content: &[u8]) -> Vec<u8> {
        if encoding == "gzip" { gzipped(content).await } else { zstded(content).await }
    }

    #[tokio::test]
    async fn limits_count_decompressed_bytes() {
        let bomb = vec![b'x'; 1 << 20];
        for (encoding, body) in [("gzip", gzipped(&bomb).await), ("zstd", zstded(&bomb).await)] {
            assert!(body.len() < 10_000);
            let small = Content::open(&headers(encoding), body.clone().into(), 1 << 20).unwrap();
            assert_eq!(small.read(SECOND).await.unwrap(), bomb);
            let large = Content::open(&headers(encoding), body.into(), (1 << 20) - 1).unwrap();
            assert!(matches!(large.read(SECOND).await, Err(BodyFault::TooLarge(_))));
        }
    }

    #[tokio::test]
    async fn a_body_of_members_without_content_is_refused() {
        for (encoding, empty) in [("gzip", gzipped(b"").await), ("zstd", zstded(b"").await)] {
            let few = [compressed_as(encoding, b"a").await, empty.repeat(100)].concat();
            let few = Content::open(&headers(encoding), few.into(), 1 << 20).unwrap();
            assert_eq!(few.read(SECOND).await.unwrap(), b"a");
            let many = empty.repeat((1 << 20) / empty.len());
            let many = Content::open(&headers(encoding), many.into(), 1 << 20).unwrap();
            let refused = many.read(SECOND).await;
            assert!(matches!(refused, Err(BodyFault::Unproductive(_))), "{encoding}: {refused:?}");
        }
    }

    #[test]
    fn a_body_that_is_costly_to_decompress_leaves_turns_to_others() {
        const LARGE: usize = 64 << 20;
        let bodies = futures::executor::block_on(async {
            let zeros = vec![0; LARGE];
            [
                ("gzip", gzipped(b"").await.repeat(1 << 18)),
                ("zstd", zstded(b"").await.repeat(1 << 18)),
                ("gzip", gzipped(&zeros).await),
                ("zstd", zstded(&zeros).await),
            ]
        });
        for (encoding, body) in bodies {
            let content = Content::open(&headers(encoding), body.into(), LARGE as u64).unwrap();
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
        for body in [gzipped(&random).await, flushed.into_inner()] {
            let content = Content::open(&headers("gzip"), body.into(), 1 << 20).unwrap();
            assert!(random.starts_with(&content.read(20 * SECOND).await.unwrap()));
        }
    }

    #[tokio::test]
    async fn a_broken_encoding_is_told_from_an_unknown_one() {
        let broken = Content::open(&headers("gzip"), "not gzip at all".into(), 100).unwrap();
        assert!(matches!(broken.read(SECOND).await, Err(BodyFault::Broken(_))));
        assert!(Content::open(&headers("br"), "x".into(), 100).is_err());
    }

    #[tokio::test]
    async fn a_body_that_stops_coming_is_given_up() {
        let stuck = Body::from_stream(futures::stream::pending::<Result<Bytes, io::Error>>());
        let content = Content::open(&HeaderMap::new(), stuck, 100).unwrap();
        let time = Duration::from_millis(5);
        assert!(matches!(content.read(time).await, Err(BodyFault::TooSlow)));
    }

    #[tokio::test]
    async fn a_body_that_comes_byte_by_byte_is_given_up() {
        let drops = futures::stream::repeat_with(|| Ok::<_, io::Error>(Bytes::from_static(b"x")));
        let drops = drops.then(|piece| async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            piece
        });
        let mut content =
            Content::open(&HeaderMap::new(), Body::from_stream(drops), 1 << 20).unwrap();
        let pace = Pace::begin(SECOND / 4, NonZeroU32::new(8_192).unwrap());
        let whole = async {
            while content.next_at(pace).await?.is_some() {}
            Ok::<_, BodyFault>(())
        };
        let given_up = tokio::time::timeout(20 * SECOND, whole).await.expect("an end");
        assert!(matches!(given_up, Err(BodyFault::TooSlow)), "{given_up:?}");
    }
}
