//! Decompresses request bodies. A body that costs much to decompress and
//! yields little is refused, and other requests get their turn meanwhile.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use bytes::{Bytes, BytesMut};
use futures::Stream;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt as _, ReadBuf};

/// Compressed bytes that may be read beyond those that the content accounts
/// for: headers, and blocks that are not complete yet.
const HEADROOM: u64 = 64 * 1024;
/// Compressed bytes for each byte of content. Content that cannot be compressed
/// needs little more than one; writers that flush after a few bytes, up to four.
const MOST_PER_BYTE: u64 = 4;
/// Compressed bytes read without content before other tasks get their turn.
const TURN_BYTES: usize = 4 * 1024;
/// Bytes of content in a piece.
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces decompressed before other tasks get their turn.
const TURN_PIECES: u32 = 16;

/// A compressed body that yields too little, such as one of empty members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its first {compressed} compressed bytes have {content} bytes of content, and may be \
     {MOST_PER_BYTE} times as many and {HEADROOM} more; compress the content once, as a whole"
)]
pub(super) struct Unproductive {
    compressed: u64,
    content: u64,
}

impl Unproductive {
    /// Finds it in an error of a decoder.
    pub(super) fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// Decompresses gzip (RFC 1952), members one after another included.
pub(super) fn gzip<R>(encoded: R) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    R: AsyncBufRead + Send + Unpin + 'static,
{
    let (reader, content) = Metered::new(encoded);
    let mut decoder = GzipDecoder::new(reader);
    decoder.multiple_members(true);
    pieces(decoder, content)
}

/// Decompresses Zstandard (RFC 8878), frames one after another included.
pub(super) fn zstd<R>(encoded: R) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static
where
    R: AsyncBufRead + Send + Unpin + 'static,
{
    let (reader, content) = Metered::new(encoded);
    let mut decoder = ZstdDecoder::new(reader);
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

/// Counts the compressed bytes that a decoder consumes.
struct Metered<R> {
    encoded: R,
    consumed: u64,
    content: Arc<AtomicU64>,
    /// Bytes that may be consumed before other tasks get their turn.
    turn: usize,
}

impl<R> Metered<R> {
    /// The reader, and the counter that it compares with.
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
        Err(io::Error::other(Unproductive { compressed: self.consumed, content }))
    }
}

impl<R: AsyncBufRead + Unpin> AsyncBufRead for Metered<R> {
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

impl<R: AsyncBufRead + Unpin> AsyncRead for Metered<R> {
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
