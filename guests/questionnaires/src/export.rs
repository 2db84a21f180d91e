//! Exports questionnaires to CSV and neutralizes spreadsheet formulas.

use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::citations::Citation;
use crate::formula;
use crate::questionnaires::StoredQuestionnaire;
use crate::questions::{self, Question, StoredQuestion};

/// Number of questions in one page of the database query.
const BATCH: u32 = 25;

/// Size of the CSV text, in bytes, after which an export continues in another part.
const PART_BYTES: usize = 2 * 1024 * 1024;

const HEADER: [&str; 9] = [
    "Reference",
    "Question",
    "Answer",
    "Status",
    "Basis",
    "Sources",
    "Review notes",
    "Approved at",
    "Approved by",
];

/// Parameters of an export: the questionnaire, and the part to return.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ExportParams {
    questionnaire_id: Uuid,
    /// `next_cursor` of the previous part; absent for the first part.
    cursor: Option<String>,
}

/// A questionnaire as a CSV file, or one part of a large file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Export")]
pub(crate) struct QuestionnaireCsv {
    /// Filename: the title with only characters that every file system accepts.
    filename: String,
    content_type: &'static str,
    /// RFC 4180 text in UTF-8; the first part begins with the header row.
    csv: String,
    /// Number of questions in this part of the export.
    question_count: usize,
    /// Cursor of the next part, whose text follows this one; null on the last part.
    next_cursor: Option<String>,
}

pub(crate) fn export(ctx: &Ctx, Params(params): Params<ExportParams>) -> Result<QuestionnaireCsv> {
    let questionnaire = ctx.documents::<StoredQuestionnaire>().get(params.questionnaire_id)?;
    let mut sheet = CsvWriter::new();
    if params.cursor.is_none() {
        sheet.row(&HEADER.map(ToOwned::to_owned))?;
    }
    let (mut count, mut cursor) = (0, params.cursor);
    loop {
        let all = ctx.documents::<StoredQuestion>().query();
        let all = all.equals("questionnaire_id", params.questionnaire_id).ascending("position");
        let page = all.cursor(cursor).limit(BATCH).page()?;
        count += page.items.len();
        for question in questions::with_citations(ctx, page.items)? {
            sheet.row(&cells(&question))?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() || sheet.len() > PART_BYTES {
            break;
        }
    }
    Ok(QuestionnaireCsv {
        filename: filename(&questionnaire.title),
        content_type: "text/csv; charset=utf-8; header=present",
        csv: sheet.finish()?,
        question_count: count,
        next_cursor: cursor,
    })
}

fn cells(question: &Question) -> [String; 9] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let sources: Vec<String> = question.citations.iter().map(Citation::label).collect();
    [
        text(&question.reference),
        question.question.clone(),
        text(&question.answer),
        name(&question.status),
        name(&question.answer_basis),
        sources.join("\n"),
        text(&question.review_notes),
        question.approved_at.map(|at| at.to_string()).unwrap_or_default(),
        question.approved_by.map(|by| by.to_string()).unwrap_or_default(),
    ]
}

/// A writer of the CSV rows of an export, in memory.
struct CsvWriter(csv::Writer<Vec<u8>>);

/// Returns the error of writing CSV to memory, which fails only if the memory is exhausted.
fn unwritten(error: impl std::fmt::Display) -> Problem {
    Problem::unavailable(format!("The file could not be written: {error}."))
}

impl CsvWriter {
    fn new() -> Self {
        let mut builder = csv::WriterBuilder::new();
        Self(builder.terminator(csv::Terminator::CRLF).from_writer(Vec::new()))
    }

    fn row(&mut self, cells: &[String]) -> Result<()> {
        let disarmed: Vec<_> = cells.iter().map(|cell| formula::disarmed(cell)).collect();
        self.0.write_record(disarmed.iter().map(|cell| cell.as_bytes())).map_err(unwritten)
    }

    fn len(&self) -> usize {
        self.0.get_ref().len()
    }

    fn finish(self) -> Result<String> {
        let bytes = self.0.into_inner().map_err(unwritten)?;
        String::from_utf8(bytes).map_err(unwritten)
    }
}

/// Converts a title to a filename that is valid on every operating system.
fn filename(title: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
    let name: String = title.to_lowercase().chars().take(80).map(plain).collect();
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    if words.is_empty() { "questionnaire.csv".to_owned() } else { words.join("-") + ".csv" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filename_is_made_of_letters_and_digits() {
        assert_eq!(filename("Äcme: Security / 2026"), "äcme-security-2026.csv");
        assert_eq!(filename("../.."), "questionnaire.csv");
    }
}
