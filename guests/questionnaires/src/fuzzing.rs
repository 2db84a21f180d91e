//! The reader of questionnaires, for fuzzing.

use crate::import;

/// Reads a file of CSV. Returns the bytes of its questions and warnings.
pub fn csv(bytes: &[u8]) -> usize {
    let Ok(imported) = import::read(bytes) else { return 0 };
    let questions = imported.questions.iter().map(|one| {
        let texts = [&one.reference, &one.answer].into_iter().flatten().map(String::len);
        one.question.len() + texts.sum::<usize>() + one.warnings.concat().len()
    });
    questions.sum::<usize>() + imported.warnings.concat().len()
}
