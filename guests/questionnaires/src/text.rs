//! Decodes UTF-8 with or without a byte order mark. Detects other formats, so that the refusal says
//! how to fix the file.

use crate::refused::FileRefusal;

/// Maximum number of control characters; a file with more is refused as not being text.
const MOST_CONTROL_CHARACTERS: usize = 1_000;

/// Hint in refusals of files with another encoding.
const SAVE_AS_UTF8: &str = "Save the file as UTF-8 and send it again; in a spreadsheet, choose \
                            \"CSV UTF-8\" under \"Save as\".";

/// First bytes of other file formats, and the names of the formats for messages.
const SIGNATURES: [(&[u8], &str); 6] = [
    (b"PK\x03\x04", "an Excel or OpenDocument workbook"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook of the old kind"),
    (b"%PDF", "a PDF document"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
];

/// Returns the text of a UTF-8 file without its byte order mark.
pub(crate) fn decode(bytes: &[u8]) -> Result<&str, FileRefusal> {
    if let Some((_, what)) = SIGNATURES.iter().find(|(first, _)| bytes.starts_with(first)) {
        return Err(FileRefusal::new(format!("The file is {what}, not UTF-8 text."), SAVE_AS_UTF8));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    if let Some(at) = text.find('\0') {
        let line = line_of(text.as_bytes(), at);
        let message = format!("Line {line} has the character U+0000, which text must not contain.");
        return Err(FileRefusal::new(message, SAVE_AS_UTF8));
    }
    let control = |c: &char| c.is_control() && !matches!(c, '\t' | '\r' | '\n');
    if text.chars().filter(control).nth(MOST_CONTROL_CHARACTERS).is_some() {
        let message = "The file has too many control characters to be text.";
        return Err(FileRefusal::new(message, SAVE_AS_UTF8));
    }
    if text.trim().is_empty() {
        let hint = "Send a CSV file with a header row and one question in each row.";
        return Err(FileRefusal::new("The file is empty.", hint));
    }
    Ok(text)
}

fn not_utf8(bytes: &[u8], at: usize) -> FileRefusal {
    let byte = bytes.get(at).copied().unwrap_or_default();
    let line = line_of(bytes, at);
    let message = format!(
        "The file is not UTF-8: line {line} has the byte 0x{byte:02X} where a character should \
         be; it looks like a Windows or ISO encoding."
    );
    FileRefusal::new(message, SAVE_AS_UTF8)
}

/// Returns the number of the line at a byte offset, from 1.
fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + bytes.iter().take(at).filter(|&&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_is_taken_with_and_without_a_byte_order_mark() {
        assert_eq!(decode("Frage;Größe".as_bytes()), Ok("Frage;Größe"));
        assert_eq!(decode("\u{feff}Frage;Größe".as_bytes()), Ok("Frage;Größe"));
    }

    #[test]
    fn anything_else_is_refused_with_what_it_is() {
        let cases: [(&[u8], &str); 8] = [
            (b"ID,Question\r\n1,Gr\xf6\xdfe?", "line 2 has the byte 0xF6"),
            (b"\xff\xfeI\0D\0", "UTF-16"),
            (b"I\0D\0,\0", "Line 1 has the character U+0000"),
            (b"PK\x03\x04\x14\0", "an Excel or OpenDocument workbook"),
            (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Excel workbook of the old kind"),
            (b"%PDF-1.7", "a PDF document"),
            (b"", "The file is empty"),
            (b"\xef\xbb\xbf \r\n\t", "The file is empty"),
        ];
        for (bytes, told) in cases {
            let refused = decode(bytes).expect_err(told);
            assert!(refused.message.contains(told), "{}", refused.message);
            assert!(!refused.hint.is_empty());
        }
        let noise = "\u{1}".repeat(1_001);
        assert!(decode(noise.as_bytes()).is_err());
    }
}
