//! Captures the log of one thread as text.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

thread_local! {
    static LISTENER: RefCell<Option<CapturedLog>> = const { RefCell::new(None) };
}

/// The captured text.
#[derive(Clone, Default)]
pub struct CapturedLog(Arc<Mutex<Vec<u8>>>);

impl CapturedLog {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Ends the capture when it is dropped.
pub struct LogCapture;

impl Drop for LogCapture {
    fn drop(&mut self) {
        LISTENER.take();
    }
}

/// Captures this thread's log until the guard is dropped.
pub fn listen() -> (CapturedLog, LogCapture) {
    let seen = CapturedLog::default();
    LISTENER.set(Some(seen.clone()));
    (seen, LogCapture)
}

/// Sets one subscriber for the process, before anything is logged. With a
/// subscriber for each thread, tracing may cache a line of another thread as
/// disabled for all.
pub fn set_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let listened = dynamic_filter_fn(|_, _| LISTENER.with_borrow(Option::is_some));
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(|| ToListener)
            .with_filter(listened.with_max_level_hint(LevelFilter::INFO));
        tracing_subscriber::registry().with(lines).init();
    });
}

struct ToListener;

impl io::Write for ToListener {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LISTENER.with_borrow(|seen| {
            if let Some(CapturedLog(text)) = seen {
                text.lock().unwrap().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
