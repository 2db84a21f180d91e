//! Decompresses request bodies. Refuses bodies that need much input for little output, and yields
//! to other tasks in between.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use bytes::{Bytes, BytesMut};
use futures::Stream;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _, ReadBuf};
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;

/// Compressed bytes that may be read before the ratio counts: headers and incomplete blocks, in
/// bytes.
const HEADROOM: u64 = 64 * 1024;
/// Maximum number of compressed bytes for each decompressed byte. Incompressible content needs
/// slightly more than one; writers that flush after a few bytes need up to four.
const MOST_PER_BYTE: u64 = 4;
/// Compressed bytes read without output before the task yields.
const TURN_BYTES: usize = 4 * 1024;
/// Size of a decompressed piece, in bytes.
const PIECE_BYTES: usize = 16 * 1024;
/// Number of pieces after which the task yields.
const TURN_PIECES: u32 = 16;

/// A compressed body with too little output, for example one of empty gzip members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its first {compressed} compressed bytes have {content} bytes of content, and may be \
     {MOST_PER_BYTE} times as many and {HEADROOM} more; compress the content once, as a whole"
)]
pub(super) struct LowDecompressionYield {
    compressed: u64,
    content: u64,
}

impl LowDecompressionYield {
    /// Returns the `LowDecompressionYield` in a decoder's error; `None` for any other error.
    pub(super) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// Decompresses gzip (RFC 1952), including concatenated members.
pub(super) fn gzip<R>(encoded: R) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    R: AsyncBufRead + Send + Unpin + 'static,
{
    let (reader, content) = RatioCheckedReader::new(encoded);
    let mut decoder = GzipDecoder::new(reader);
    decoder.multiple_members(true);
    pieces(decoder, content)
}

/// Largest allowed window of a frame, as a power of two: 8 MiB, as in RFC 9659. A decoder allocates
/// the window for each body.
const WINDOW_LOG: u32 = 23;

/// Returns whether the decoder refused a frame because its window is too large.
pub(super) fn is_large_window(error: &io::Error) -> bool {
    let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<zstd::Error>());
    refused
        .is_some_and(|refused| refused.is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge))
}

/// Decompresses Zstandard (RFC 8878), including concatenated frames.
pub(super) fn zstd<R>(encoded: R) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    R: AsyncBufRead + Send + Unpin + 'static,
{
    let (reader, content) = RatioCheckedReader::new(encoded);
    let mut decoder = ZstdDecoder::with_params(reader, &[DParameter::window_log_max(WINDOW_LOG)]);
    decoder.multiple_members(true);
    pieces(decoder, content)
}

fn pieces<D>(decoder: D, content: Arc<AtomicU64>) -> impl Stream<Item = io::Result<Bytes>> + Send
where
    D: AsyncRead + Send + Unpin + 'static,
{
    let start = (decoder, content, TURN_PIECES);
    futures::stream::try_unfold(start, |(mut decoder, content, mut turn)| async move {
        if turn == 0 {
            tokio::task::yield_now().await;
            turn = TURN_PIECES;
        }
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        let length = decoder.read_buf(&mut piece).await?;
        content.fetch_add(length as u64, Ordering::Relaxed);
        Ok((length > 0).then(|| (piece.freeze(), (decoder, content, turn - 1))))
    })
}

/// Counts the compressed bytes that a decoder consumes. Fails if they are too many for the
/// decompressed bytes.
struct RatioCheckedReader<R> {
    encoded: R,
    consumed: u64,
    content: Arc<AtomicU64>,
    /// Number of compressed bytes that may still be read before the task yields.
    turn: usize,
}

impl<R> RatioCheckedReader<R> {
    /// Returns the reader and the counter of decompressed bytes, which its caller updates.
    fn new(encoded: R) -> (Self, Arc<AtomicU64>) {
        let content = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&content);
        (Self { encoded, consumed: 0, content, turn: TURN_BYTES }, counter)
    }

    fn check(&self) -> io::Result<()> {
        let content = self.content.load(Ordering::Relaxed);
        if self.consumed <= content.saturating_mul(MOST_PER_BYTE).saturating_add(HEADROOM) {
            return Ok(());
        }
        Err(io::Error::other(LowDecompressionYield { compressed: self.consumed, content }))
    }
}

impl<R: AsyncBufRead + Unpin> AsyncBufRead for RatioCheckedReader<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        this.check()?;
        if this.turn == 0 {
            this.turn = TURN_BYTES;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let filled = ready!(Pin::new(&mut this.encoded).poll_fill_buf(cx))?;
        Poll::Ready(Ok(&filled[..filled.len().min(this.turn)]))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        let this = self.get_mut();
        this.consumed += amount as u64;
        this.turn = this.turn.saturating_sub(amount);
        Pin::new(&mut this.encoded).consume(amount);
    }
}

impl<R: AsyncBufRead + Unpin> AsyncRead for RatioCheckedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled = ready!(self.as_mut().poll_fill_buf(cx))?;
        let length = filled.len().min(buffer.remaining());
        buffer.put_slice(&filled[..length]);
        self.consume(length);
        Poll::Ready(Ok(()))
    }
}
