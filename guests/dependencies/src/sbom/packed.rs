//! Searches SBOM files that are too large for memory. They are read as a stream, before they are
//! parsed.

use artifact_formats::stream;
use memchr::memmem;

use crate::reading::{ImportFailure, STREAM};

/// Returns the first byte offset of each of these texts in the unpacked content of a compressed
/// SBOM file; `None` for a text that does not occur. Fails if the content exceeds a size limit.
pub(super) fn places<const N: usize>(
    packed: &[u8],
    texts: [&'static str; N],
) -> Result<[Option<usize>; N], ImportFailure> {
    let mut searches = texts.map(StreamTextSearch::new);
    let observe = |piece: &[u8]| searches.iter_mut().for_each(|search| search.read(piece));
    let read = stream::parse(packed, STREAM, observe, |_| ());
    read.map_err(|breach| ImportFailure::at("", breach.to_string()))?;
    Ok(searches.map(|search| search.found))
}

/// Search for one text in a stream that arrives in pieces.
struct StreamTextSearch {
    text: &'static [u8],
    /// Last bytes of the stream so far, which may be the beginning of the text.
    tail: Vec<u8>,
    read: usize,
    found: Option<usize>,
}

impl StreamTextSearch {
    fn new(text: &'static str) -> Self {
        Self { text: text.as_bytes(), tail: Vec::new(), read: 0, found: None }
    }

    fn read(&mut self, piece: &[u8]) {
        if self.found.is_some() {
            return;
        }
        let begin = self.read - self.tail.len();
        self.read += piece.len();
        self.tail.extend(piece);
        self.found = memmem::find(&self.tail, self.text).map(|at| begin + at);
        let kept = self.tail.len().min(self.text.len() - 1);
        self.tail.drain(..self.tail.len() - kept);
    }
}

#[cfg(test)]
mod tests {
    use area_shared::testing::{corpus, files_with};
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Sbom;
    use super::*;
    use crate::tests::gzip;

    /// Returns a summary of the file's content, or its error.
    fn summary(bytes: &[u8]) -> Result<String, String> {
        let sbom = Sbom::read(bytes).map_err(|mistake| mistake.pointer)?;
        let components = sbom.components(0..sbom.len());
        let head = (&sbom.subject, &sbom.tool, sbom.created_at, sbom.graph, &sbom.warnings);
        Ok(format!("{head:?} {components:?}"))
    }

    #[test]
    fn a_packed_file_says_what_it_says_unpacked() {
        let mut read = 0;
        for folder in ["cyclonedx", "spdx"] {
            let Some(folder) = corpus(folder) else { return };
            for file in files_with(&folder, "json") {
                let bytes = std::fs::read(&file).expect("a file");
                let (plain, packed) = (summary(&bytes), summary(&gzip(&bytes)));
                assert_eq!(plain, packed, "{}", file.display());
                read += usize::from(plain.is_ok());
            }
        }
        assert!(read > 50, "{read}");
    }

    #[test]
    fn what_is_wrong_in_a_packed_file_is_said_with_its_place() {
        let wrong = json!({ "bomFormat": "CycloneDX", "specVersion": "1.5", "components": [{}] });
        let mistake = Sbom::read(&gzip(wrong.to_string().as_bytes())).expect_err("a mistake");
        assert_eq!(mistake.pointer, "/components/0");
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(Sbom::read(&gzip(deep.as_bytes())).expect_err("deep").message.contains("deeper"));
        assert!(Sbom::read(&gzip(b"{}")).is_err() && Sbom::read(&gzip(b"\xff")).is_err());
        assert!(Sbom::read(b"\x1f\x8b").is_err());
    }

    proptest! {
        #[test]
        fn a_text_is_found_wherever_pieces_end(text in "[ab]{0,40}", cut in 1..9_usize) {
            let mut search = StreamTextSearch::new("abba");
            text.as_bytes().chunks(cut).for_each(|piece| search.read(piece));
            prop_assert_eq!(search.found, text.find("abba"));
        }
    }
}
