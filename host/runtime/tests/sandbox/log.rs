//! Captures the log of one thread as text.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

thread_local! {
    /// The captured text; `None` while nothing is captured.
    static CAPTURED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Begins to capture this thread's log.
pub fn capture() {
    CAPTURED.set(Some(Vec::new()));
}

/// Ends the capture and returns the text.
pub fn captured() -> String {
    String::from_utf8(CAPTURED.take().unwrap()).unwrap()
}

/// Sets one subscriber for the process, before anything is logged. With a
/// subscriber for each thread, tracing may cache a line of another thread as
/// disabled for all.
pub fn set_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let captured = dynamic_filter_fn(|_, _| CAPTURED.with_borrow(Option::is_some));
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(|| CaptureWriter)
            .with_filter(captured.with_max_level_hint(LevelFilter::INFO));
        tracing_subscriber::registry().with(lines).init();
    });
}

struct CaptureWriter;

impl io::Write for CaptureWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        CAPTURED.with_borrow_mut(|text| text.get_or_insert_default().extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
