//! Nesting depth of JSON. Parsers recurse, and an area's stack is small.

/// Maximum nesting of a CycloneDX or SPDX document, in arrays and objects.
pub const MAX_SBOM_DEPTH: usize = 40;

/// Returns the maximum nesting depth of a JSON text, in arrays and objects.
pub fn depth(text: &[u8]) -> usize {
    let mut scan = NestingScanner::default();
    scan.read(text);
    scan.deepest()
}

/// Measures the nesting depth of a JSON text that arrives in pieces.
#[derive(Clone, Copy, Debug, Default)]
pub struct NestingScanner {
    depth: usize,
    deepest: usize,
    place: JsonStringState,
}

#[derive(Clone, Copy, Debug, Default)]
enum JsonStringState {
    #[default]
    Outside,
    String,
    /// After a backslash in a string: the next byte does not end the string.
    Escape,
}

impl NestingScanner {
    /// Measures the next piece of the JSON text.
    pub fn read(&mut self, piece: &[u8]) {
        let mut rest = piece;
        loop {
            rest = match self.place {
                JsonStringState::Outside => self.outside(rest),
                JsonStringState::String => self.string(rest),
                JsonStringState::Escape if rest.is_empty() => rest,
                JsonStringState::Escape => {
                    self.place = JsonStringState::String;
                    &rest[1..]
                }
            };
            if rest.is_empty() {
                return;
            }
        }
    }

    /// Returns the maximum nesting depth of the pieces read so far.
    pub fn deepest(&self) -> usize {
        self.deepest
    }

    fn outside<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b'"' => {
                    self.place = JsonStringState::String;
                    return &text[at + 1..];
                }
                b'[' | b'{' => {
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        &[]
    }

    fn string<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let Some(at) = memchr::memchr2(b'"', b'\\', text) else { return &[] };
        self.place =
            if text[at] == b'"' { JsonStringState::Outside } else { JsonStringState::Escape };
        &text[at + 1..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_strings_does_not_nest() {
        for (text, deepest) in [
            ("", 0),
            ("1", 0),
            (r#"[{"a": []}]"#, 3),
            (r#"["[[", "\"[[", "\\", []]"#, 2),
            (r#"["[[\"#, 1),
            (r#"[]]]["#, 1),
        ] {
            assert_eq!(depth(text.as_bytes()), deepest, "{text}");
            let mut scan = NestingScanner::default();
            text.as_bytes().chunks(1).for_each(|byte| scan.read(byte));
            assert_eq!(scan.deepest(), deepest, "{text}, byte by byte");
        }
    }
}
