//! Formats a guest's stack as text, one frame per line. The component chooses
//! the function names. A mangled name of some hundred bytes can expand to
//! gigabytes, so both the mangled and the expanded name are cut at a limit;
//! formatting a stack takes some microseconds.

use std::fmt::{self, Write};

use wasmtime::{FrameInfo, WasmBacktrace};

use super::log::clean;

/// Maximum length of a mangled name, and of the demangled text, in bytes.
const MAX_NAME_BYTES: usize = 1_000;

/// Formats the stack of a guest; wasmtime limits the number of frames.
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

/// Returns the demangled name of a Rust function; other names are unchanged.
fn demangled(mangled: &str) -> String {
    let end = mangled.floor_char_boundary(MAX_NAME_BYTES);
    let mut name = DemangledNameBuffer { text: String::new(), is_full: end < mangled.len() };
    // Returns an error if the text is full; it then contains the beginning of
    // the name.
    let _ = write!(name, "{:#}", rustc_demangle::demangle(&mangled[..end]));
    let mut text = clean(&name.text, MAX_NAME_BYTES);
    if name.is_full {
        text.push('…');
    }
    text
}

/// Text buffer that accepts at most [`MAX_NAME_BYTES`].
struct DemangledNameBuffer {
    text: String,
    is_full: bool,
}

impl Write for DemangledNameBuffer {
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

    /// Returns a mangled Rust name with this many nested pair types; each level
    /// doubles the demangled length.
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
        // The second name is from C++, so it is not demangled.
        for hostile in [doubling(60), pairs, "x".repeat(100_000)] {
            let shown = demangled(&hostile);
            assert!(shown.len() <= MAX_NAME_BYTES + '…'.len_utf8(), "{}", shown.len());
            assert!(shown.len() == hostile.len() || shown.ends_with('…'), "{shown}");
        }
        assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    }
}
