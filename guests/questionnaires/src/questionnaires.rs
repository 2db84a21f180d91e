//! Questionnaires: import, list and deletion.

use area_sdk::prelude::*;
use area_sdk::{Form, JobOptions, Scope};

use crate::citations::StoredCitation;
use crate::import::{self, ImportedQuestion, ParsedFile};
use crate::questions::{Question, StoredQuestion};

/// Maximum length of a questionnaire's title, in characters.
pub(crate) const MOST_TITLE_CHARACTERS: usize = 200;

/// Maximum number of questionnaires of a workspace.
const MOST_QUESTIONNAIRES: u64 = 1_000;

/// Number of documents in one page of a database query.
const BATCH: u32 = 500;

/// A questionnaire.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Questionnaire {
    approved_count: u32,
    created_at: Timestamp,
    id: Uuid,
    question_count: u32,
    title: String,
    updated_at: Timestamp,
    version: u64,
    /// Warnings of the import about rows, in the order of the file, then about the whole file.
    warnings: Vec<String>,
}

/// Response to an import: the questionnaire and its questions.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QuestionnaireImport")]
pub(crate) struct QuestionnaireImportResponse {
    questionnaire: Questionnaire,
    /// All questions in the order of the file.
    questions: Vec<Question>,
}

/// A questionnaire in a list.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QuestionnaireSummary")]
pub(crate) struct QuestionnaireListItem {
    approved_count: u32,
    created_at: Timestamp,
    /// Name of the imported file; null if the client sent none.
    filename: Option<String>,
    id: Uuid,
    imported_by: Uuid,
    question_count: u32,
    title: String,
    updated_at: Timestamp,
    version: u64,
    warning_count: u32,
}

/// A stored questionnaire.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredQuestionnaire {
    pub(crate) title: String,
    pub(crate) question_count: u32,
    pub(crate) approved_count: u32,
    warning_count: u32,
    filename: Option<String>,
    /// Lower-case hex SHA-256 of the imported file.
    content_sha256: String,
    imported_by: Uuid,
}

document!(StoredQuestionnaire, "questionnaires");

/// Warnings of a questionnaire's import; the document has the questionnaire's id.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImportWarnings {
    warnings: Vec<String>,
}

document!(ImportWarnings, "import_warnings");

/// Published when a questionnaire was imported.
#[derive(Serialize, JsonSchema)]
pub(crate) struct QuestionnaireImported {
    questionnaire_id: Uuid,
    title: String,
    question_count: u32,
    warning_count: u32,
    imported_by: Uuid,
}

event!(QuestionnaireImported, "questionnaire.imported");

/// Published when an admin approved the last answer of a questionnaire that was not approved.
#[derive(Serialize, JsonSchema)]
pub(crate) struct QuestionnaireApproved {
    pub(crate) questionnaire_id: Uuid,
    pub(crate) title: String,
    pub(crate) question_count: u32,
}

event!(QuestionnaireApproved, "questionnaire.approved");

/// Published when a questionnaire was deleted.
#[derive(Serialize, JsonSchema)]
pub(crate) struct QuestionnaireDeleted {
    questionnaire_id: Uuid,
    title: String,
}

event!(QuestionnaireDeleted, "questionnaire.deleted");

/// Converts a stored questionnaire for a response.
fn view(stored: Stored<StoredQuestionnaire>, warnings: Vec<String>) -> Questionnaire {
    Questionnaire {
        approved_count: stored.approved_count,
        created_at: stored.created_at,
        id: stored.uuid(),
        question_count: stored.question_count,
        updated_at: stored.updated_at,
        version: stored.version,
        title: stored.value.title,
        warnings,
    }
}

impl From<Stored<StoredQuestionnaire>> for QuestionnaireListItem {
    fn from(stored: Stored<StoredQuestionnaire>) -> Self {
        Self {
            approved_count: stored.approved_count,
            created_at: stored.created_at,
            id: stored.uuid(),
            imported_by: stored.imported_by,
            question_count: stored.question_count,
            updated_at: stored.updated_at,
            version: stored.version,
            warning_count: stored.warning_count,
            filename: stored.value.filename,
            title: stored.value.title,
        }
    }
}

/// Trims the title of a questionnaire and checks its length.
fn title(pointer: &str, given: &str) -> Result<String> {
    let title = given.trim();
    let count = title.chars().count();
    if (1..=MOST_TITLE_CHARACTERS).contains(&count) {
        return Ok(title.to_owned());
    }
    let message = format!("has {count} characters; 1 to {MOST_TITLE_CHARACTERS} are allowed");
    Err(Problem::validation(pointer, message).hint("Send a short title."))
}

/// Returns the number of items, which fits because the import limits it.
fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

pub(crate) fn import(
    ctx: &Ctx,
    form: Form,
) -> Result<Created<Versioned<QuestionnaireImportResponse>>> {
    let given = form.part("title").map_or(&[][..], |part| &part.content);
    let title = title("title", &String::from_utf8_lossy(given))?;
    let Some(file) = form.part("file") else {
        return Err(Problem::validation("file", "is required"));
    };
    let imported = import::read(&file.content)?;
    let value = StoredQuestionnaire {
        title,
        question_count: count(&imported.questions),
        approved_count: 0,
        warning_count: count(&imported.warnings),
        filename: file.filename.clone(),
        content_sha256: ctx.sha256_hex(&file.content),
        imported_by: ctx.user(),
    };
    drop(form);
    keep(ctx, value, imported).map(|made| Created(Versioned(made, 1)))
}

/// Stores an imported questionnaire with its questions and publishes the event. Other writers may
/// wait from the first query on, so everything that takes time comes before it.
fn keep(
    ctx: &Ctx,
    value: StoredQuestionnaire,
    imported: ParsedFile,
) -> Result<QuestionnaireImportResponse> {
    let id = ctx.new_id();
    let questions = new_questions(ctx, id, imported.questions);
    let warnings = ImportWarnings { warnings: imported.warnings };
    check_count(ctx)?;
    ctx.publish(QuestionnaireImported {
        questionnaire_id: id,
        title: value.title.clone(),
        question_count: value.question_count,
        warning_count: value.warning_count,
        imported_by: value.imported_by,
    });
    let stored = ctx.documents().create_stored(id, value)?;
    for batch in questions.chunks(BATCH as usize) {
        ctx.documents().create_all(batch.iter().map(|new| (&new.id, &new.value)))?;
    }
    ctx.documents().create(id, &warnings)?;
    let questions = questions.into_iter().map(|stored| Question::new(stored, Vec::new())).collect();
    Ok(QuestionnaireImportResponse { questionnaire: view(stored, warnings.warnings), questions })
}

/// Returns a 409 if the workspace has the maximum number of questionnaires.
fn check_count(ctx: &Ctx) -> Result<()> {
    if ctx.documents::<StoredQuestionnaire>().query().count()? < MOST_QUESTIONNAIRES {
        return Ok(());
    }
    let detail = "A workspace has at most 1,000 questionnaires.";
    Err(Problem::conflict("too_many_questionnaires", detail).hint("Delete one."))
}

/// Returns the documents of imported questions, which are not stored yet.
fn new_questions(
    ctx: &Ctx,
    questionnaire_id: Uuid,
    imported: Vec<ImportedQuestion>,
) -> Vec<Stored<StoredQuestion>> {
    let new = (1..).zip(imported).map(|(position, question)| {
        let value = StoredQuestion::new(questionnaire_id, position, question);
        let (id, now) = (ctx.new_id().to_string(), ctx.now());
        Stored { id, version: 1, created_at: now, updated_at: now, value }
    });
    new.collect()
}

pub(crate) fn list(ctx: &Ctx, paging: Paging) -> Result<Page<QuestionnaireListItem>> {
    let all = ctx.documents::<StoredQuestionnaire>().query();
    let page = all.paging(paging).page()?;
    Ok(page.map(QuestionnaireListItem::from))
}

/// Returns a questionnaire with its warnings, and its version in `ETag`.
fn whole(scope: &Scope, stored: Stored<StoredQuestionnaire>) -> Result<Versioned<Questionnaire>> {
    let warnings = scope.documents::<ImportWarnings>().find(&stored.id)?;
    let warnings = warnings.map(|warnings| warnings.value.warnings).unwrap_or_default();
    Ok(stored.versioned(|stored| view(stored, warnings)))
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<Questionnaire>> {
    whole(ctx, ctx.documents().get(id)?)
}

/// Changes of a questionnaire; absent members keep their values.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct QuestionnaireChanges {
    #[schemars(length(min = 1, max = 200))]
    title: String,
}

pub(crate) fn update(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(changes): Body<QuestionnaireChanges>,
) -> Result<Versioned<Questionnaire>> {
    let mut stored = ctx.documents::<StoredQuestionnaire>().get(id)?;
    ctx.check_if_match(stored.version)?;
    stored.title = title("/title", &changes.title)?;
    ctx.documents().replace(&mut stored)?;
    whole(ctx, stored)
}

pub(crate) fn remove(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<NoContent> {
    let stored = ctx.documents::<StoredQuestionnaire>().get(id)?;
    ctx.check_if_match(stored.version)?;
    ctx.documents().delete(&stored)?;
    if let Some(warnings) = ctx.documents::<ImportWarnings>().find(id)? {
        ctx.documents().delete(&warnings)?;
    }
    ctx.publish(QuestionnaireDeleted { questionnaire_id: id, title: stored.value.title });
    let discard = DiscardQuestionnaireJob { questionnaire_id: id };
    ctx.enqueue_with(&discard, JobOptions { resource: Some(id), ..JobOptions::default() });
    Ok(NoContent)
}

/// Job that deletes questions, citations and warnings of a deleted questionnaire.
#[derive(Serialize, Deserialize)]
pub(crate) struct DiscardQuestionnaireJob {
    questionnaire_id: Uuid,
}

job!(DiscardQuestionnaireJob, "discard_questionnaire");

pub(crate) fn discard(
    ctx: &JobCtx,
    job: DiscardQuestionnaireJob,
) -> JobResult<DiscardQuestionnaireJob> {
    let id = job.questionnaire_id;
    let citations = ctx.documents::<StoredCitation>().query().equals("questionnaire_id", id);
    let questions = ctx.documents::<StoredQuestion>().query().equals("questionnaire_id", id);
    let more =
        citations.limit(BATCH).delete_page()? > 0 || questions.limit(BATCH).delete_page()? > 0;
    Ok(if more { Outcome::Continue(job) } else { Outcome::Done })
}
