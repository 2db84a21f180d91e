//! Entry point for fuzzing the questionnaire parser.

use crate::import;

/// Parses a CSV questionnaire. Returns the total size of its questions and warnings in bytes, which
/// the fuzzer compares with the size of the input; 0 if it is refused.
pub fn csv(bytes: &[u8]) -> usize {
    let Ok(imported) = import::read(bytes) else { return 0 };
    let questions = imported.questions.iter().map(|one| {
        let texts = [&one.reference, &one.answer].into_iter().flatten().map(String::len);
        one.question.len() + texts.sum::<usize>() + one.warnings.concat().len()
    });
    questions.sum::<usize>() + imported.warnings.concat().len()
}
