//! A guest's stack as text, a frame a line. The names in it are the
//! component's: demangled, a name of some hundred bytes can stand for
//! gigabytes. So a name is read, and what it stands for is written, only up to
//! a limit, and a stack costs some microseconds.

use std::fmt::{self, Write};

use wasmtime::{FrameInfo, WasmBacktrace};

use super::log::clean;

/// Bytes of a name, and of the text that it stands for.
const MAX_NAME_BYTES: usize = 1_000;

/// The text; wasmtime bounds the number of frames.
pub(super) fn text(backtrace: &WasmBacktrace) -> String {
    let frames = backtrace.frames().iter().enumerate();
    frames.map(|(number, frame)| line(number, frame)).collect::<Vec<_>>().join("\n")
}

fn line(number: usize, frame: &FrameInfo) -> String {
    let module = clean(frame.module().name().unwrap_or("<unknown>"), MAX_NAME_BYTES);
    let function = match frame.func_name() {
        Some(name) => demangled(name),
        None => format!("<wasm function {}>", frame.func_index()),
    };
    match frame.module_offset() {
        Some(offset) => format!("{number:>3}: {offset:#8x} - {module}!{function}"),
        None => format!("{number:>3}: {module}!{function}"),
    }
}

/// The name of a function as its author wrote it in Rust; any other as it is.
fn demangled(mangled: &str) -> String {
    let end = mangled.floor_char_boundary(MAX_NAME_BYTES);
    let mut name = BoundedText { text: String::new(), is_full: end < mangled.len() };
    // Fails where the text is full; what it has is the beginning of the name.
    let _ = write!(name, "{:#}", rustc_demangle::demangle(&mangled[..end]));
    let mut text = clean(&name.text, MAX_NAME_BYTES);
    if name.is_full {
        text.push('…');
    }
    text
}

/// A text that refuses to become longer than a name may be.
struct BoundedText {
    text: String,
    is_full: bool,
}

impl Write for BoundedText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let left = MAX_NAME_BYTES.saturating_sub(self.text.len());
        if more.len() > left {
            self.text.push_str(&more[..more.floor_char_boundary(left)]);
            self.is_full = true;
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// A name of Rust's with a type for each level, a pair of the one below.
    fn doubling(levels: usize) -> String {
        let mut name = "INvC1a1fh".to_owned();
        let mut last = name.len() - 1;
        for _ in 0..levels {
            let reference = format!("B{}_", base_62(last - 1));
            last = name.len();
            let _ = write!(name, "T{reference}{reference}E");
        }
        format!("_R{name}E")
    }

    fn base_62(number: usize) -> String {
        const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let low = char::from(DIGITS[number % 62]);
        if number < 62 { low.to_string() } else { base_62(number / 62) + &low.to_string() }
    }

    #[test]
    fn a_name_is_shown_as_its_author_wrote_it() {
        assert_eq!(demangled("_ZN7fixture4fall17h0123456789abcdefE"), "fixture::fall");
        assert_eq!(demangled(&doubling(2)), "a::f::<u8, (u8, u8), ((u8, u8), (u8, u8))>");
        assert_eq!(demangled("main\n"), "main\\n");
    }

    #[test]
    fn a_name_that_stands_for_gigabytes_is_cut_at_once() {
        let begun = Instant::now();
        let pairs = format!("_Z1fI{}", "St4pairIS0_S0_E".repeat(40));
        // The second is C++, and stays as it is.
        for hostile in [doubling(60), pairs, "x".repeat(100_000)] {
            let shown = demangled(&hostile);
            assert!(shown.len() <= MAX_NAME_BYTES + '…'.len_utf8(), "{}", shown.len());
            assert!(shown.len() == hostile.len() || shown.ends_with('…'), "{shown}");
        }
        assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    }
}
