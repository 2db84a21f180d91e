//! What one thread logs, as text.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, dynamic_filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

thread_local! {
    static LISTENER: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

/// What was logged.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<u8>>>);

impl Seen {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Ends the listening when it is dropped.
pub struct Listening;

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENER.take();
    }
}

/// Listens to this thread's log until the guard is dropped.
pub fn listen() -> (Seen, Listening) {
    let seen = Seen::default();
    LISTENER.set(Some(seen.clone()));
    (seen, Listening)
}

/// One subscriber for the process, set before anything is logged: with one for
/// each thread, a line that another thread logs first, where none listens, may
/// be taken for one that nobody ever wants.
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
            if let Some(Seen(text)) = seen {
                text.lock().unwrap().extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
