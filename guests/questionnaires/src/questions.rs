//! Questions with their answers, citations and approvals.

use area_sdk::Scope;
use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::citations::{self, AnswerSupport, Citation};
use crate::cite::{self, NewCitation};
use crate::import::ImportedQuestion;
use crate::questionnaires::{QuestionnaireApproved, StoredQuestionnaire};

/// Status of a question of a questionnaire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuestionStatus {
    /// No user has answered the question; the imported file may have an answer.
    Unanswered,
    /// A user answered the question.
    Answered,
    /// An admin approved the answer.
    Approved,
}

/// A question of a questionnaire, with its answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Question {
    pub(crate) answer: Option<String>,
    pub(crate) answer_basis: AnswerSupport,
    pub(crate) approved_at: Option<Timestamp>,
    pub(crate) approved_by: Option<Uuid>,
    pub(crate) citations: Vec<Citation>,
    id: Uuid,
    /// Position of the question from 1, in the order of the file.
    pub(crate) position: u32,
    pub(crate) question: String,
    pub(crate) reference: Option<String>,
    pub(crate) review_notes: Option<String>,
    pub(crate) status: QuestionStatus,
    version: u64,
    warnings: Vec<String>,
}

/// A stored question.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredQuestion {
    questionnaire_id: Uuid,
    position: u32,
    question: String,
    reference: Option<String>,
    answer: Option<String>,
    answered_by: Option<Uuid>,
    approved_at: Option<Timestamp>,
    approved_by: Option<Uuid>,
    review_notes: Option<String>,
    status: QuestionStatus,
    warnings: Vec<String>,
}

document!(StoredQuestion, "questions");

impl StoredQuestion {
    pub(crate) fn new(questionnaire_id: Uuid, position: u32, imported: ImportedQuestion) -> Self {
        Self {
            questionnaire_id,
            position,
            question: imported.question,
            reference: imported.reference,
            answer: imported.answer,
            answered_by: None,
            approved_at: None,
            approved_by: None,
            review_notes: None,
            status: QuestionStatus::Unanswered,
            warnings: imported.warnings,
        }
    }
}

impl Question {
    pub(crate) fn new(stored: Stored<StoredQuestion>, citations: Vec<Citation>) -> Self {
        Self {
            answer_basis: AnswerSupport::of(&citations),
            citations,
            id: stored.uuid(),
            version: stored.version,
            answer: stored.value.answer,
            approved_at: stored.value.approved_at,
            approved_by: stored.value.approved_by,
            position: stored.value.position,
            question: stored.value.question,
            reference: stored.value.reference,
            review_notes: stored.value.review_notes,
            status: stored.value.status,
            warnings: stored.value.warnings,
        }
    }
}

/// Published when a question was answered.
#[derive(Serialize, JsonSchema)]
pub(crate) struct QuestionAnswered {
    questionnaire_id: Uuid,
    question_id: Uuid,
    position: u32,
    answered_by: Uuid,
}

event!(QuestionAnswered, "questionnaire.question_answered");

/// Published when an answer was approved.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AnswerApproved {
    questionnaire_id: Uuid,
    question_id: Uuid,
    position: u32,
    approved_by: Uuid,
}

event!(AnswerApproved, "questionnaire.answer_approved");

/// Path parameters of a question: ids of the questionnaire and the question.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct QuestionPath {
    questionnaire_id: Uuid,
    question_id: Uuid,
}

/// Returns the question in the path with its questionnaire, or a 404.
fn find(
    ctx: &Ctx,
    path: &QuestionPath,
) -> Result<(Stored<StoredQuestionnaire>, Stored<StoredQuestion>)> {
    let questionnaire = ctx.documents::<StoredQuestionnaire>().get(path.questionnaire_id)?;
    let question = ctx.documents::<StoredQuestion>().get(path.question_id)?;
    if question.questionnaire_id != path.questionnaire_id {
        return Err(Problem::not_found());
    }
    Ok((questionnaire, question))
}

/// Converts stored questions for a response, with their citations.
pub(crate) fn with_citations(
    scope: &Scope,
    stored: Vec<Stored<StoredQuestion>>,
) -> Result<Vec<Question>> {
    let ids: Vec<Uuid> = stored.iter().map(Stored::uuid).collect();
    let mut cited = citations::of(scope, &ids)?;
    let question = |stored: Stored<StoredQuestion>| {
        let citations = cited.remove(&stored.uuid()).unwrap_or_default();
        Question::new(stored, citations)
    };
    Ok(stored.into_iter().map(question).collect())
}

fn versioned(scope: &Scope, stored: Stored<StoredQuestion>) -> Result<Versioned<Question>> {
    let citations = citations::of_one(scope, stored.uuid())?;
    Ok(stored.versioned(|stored| Question::new(stored, citations)))
}

/// Query parameters that filter the list of questions.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    questionnaire_id: Uuid,
    /// Only questions with this status.
    status: Option<QuestionStatus>,
}

pub(crate) fn list(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging<50, 50>,
) -> Result<Page<Question>> {
    ctx.documents::<StoredQuestionnaire>().get(params.questionnaire_id)?;
    let all = ctx.documents::<StoredQuestion>().query();
    let all = all.equals("questionnaire_id", params.questionnaire_id);
    let all = all.equals_if("status", params.status.as_ref().map(name));
    let page = all.ascending("position").paging(paging).page()?;
    let items = with_citations(ctx, page.items)?;
    Ok(Page { items, next_cursor: page.next_cursor })
}

pub(crate) fn show(ctx: &Ctx, Params(path): Params<QuestionPath>) -> Result<Versioned<Question>> {
    let (_, question) = find(ctx, &path)?;
    versioned(ctx, question)
}

/// Changes of a question. Absent members keep their values; null deletes `answer` or
/// `review_notes`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct QuestionChanges {
    #[serde(default)]
    /// At most as long as an answer in a file, which a user confirms by sending it.
    #[schemars(length(max = 32_767))]
    answer: Patch<String>,
    #[serde(default)]
    #[schemars(length(max = 4_000))]
    review_notes: Patch<String>,
    /// All citations of the answer; replaces the existing ones.
    #[schemars(length(max = 10))]
    citations: Option<Vec<NewCitation>>,
}

/// Returns the new text of a member; `None` if the text is blank or null.
fn said(text: &Patch<String>) -> Option<String> {
    text.value().filter(|text| !text.trim().is_empty()).cloned()
}

pub(crate) fn update(
    ctx: &Ctx,
    Params(path): Params<QuestionPath>,
    Body(changes): Body<QuestionChanges>,
) -> Result<Versioned<Question>> {
    let (questionnaire, mut question) = find(ctx, &path)?;
    ctx.check_if_match(question.version)?;
    if !changes.answer.is_absent() || changes.citations.is_some() {
        withdraw(ctx, questionnaire, &mut question)?;
    }
    if !changes.answer.is_absent() {
        answer_with(ctx, &path, &mut question, said(&changes.answer));
    }
    if let Some(citations) = changes.citations {
        citations::forget(ctx, path.question_id)?;
        cite::cite(ctx, path.questionnaire_id, path.question_id, citations)?;
    }
    if !changes.review_notes.is_absent() {
        question.review_notes = said(&changes.review_notes);
    }
    ctx.documents().replace(&mut question)?;
    versioned(ctx, question)
}

fn answer_with(
    ctx: &Ctx,
    path: &QuestionPath,
    question: &mut Stored<StoredQuestion>,
    answer: Option<String>,
) {
    question.answer = answer;
    if question.answer.is_none() {
        question.answered_by = None;
        question.status = QuestionStatus::Unanswered;
        return;
    }
    question.answered_by = Some(ctx.user());
    question.status = QuestionStatus::Answered;
    ctx.publish(QuestionAnswered {
        questionnaire_id: path.questionnaire_id,
        question_id: path.question_id,
        position: question.position,
        answered_by: ctx.user(),
    });
}

/// Withdraws the approval of an answer, if it is approved.
fn withdraw(
    ctx: &Ctx,
    mut questionnaire: Stored<StoredQuestionnaire>,
    question: &mut Stored<StoredQuestion>,
) -> Result<()> {
    if question.status != QuestionStatus::Approved {
        return Ok(());
    }
    question.status = QuestionStatus::Answered;
    question.approved_at = None;
    question.approved_by = None;
    questionnaire.approved_count = questionnaire.approved_count.saturating_sub(1);
    Ok(ctx.documents().replace(&mut questionnaire)?)
}

pub(crate) fn approve(
    ctx: &Ctx,
    Params(path): Params<QuestionPath>,
) -> Result<Versioned<Question>> {
    let (questionnaire, mut question) = find(ctx, &path)?;
    ctx.check_if_match(question.version)?;
    match question.status {
        QuestionStatus::Approved => return versioned(ctx, question),
        QuestionStatus::Answered => {}
        QuestionStatus::Unanswered => {
            let detail = "This question has no answer by a user yet.";
            return Err(Problem::conflict("question_unanswered", detail)
                .hint("Answer it first; confirm an answer of the file by sending it again."));
        }
    }
    question.status = QuestionStatus::Approved;
    question.approved_at = Some(ctx.now());
    question.approved_by = Some(ctx.user());
    ctx.documents().replace(&mut question)?;
    ctx.publish(AnswerApproved {
        questionnaire_id: path.questionnaire_id,
        question_id: path.question_id,
        position: question.position,
        approved_by: ctx.user(),
    });
    count_approval(ctx, questionnaire)?;
    versioned(ctx, question)
}

fn count_approval(ctx: &Ctx, mut questionnaire: Stored<StoredQuestionnaire>) -> Result<()> {
    questionnaire.approved_count += 1;
    ctx.documents().replace(&mut questionnaire)?;
    if questionnaire.approved_count == questionnaire.question_count {
        ctx.publish(QuestionnaireApproved {
            questionnaire_id: questionnaire.uuid(),
            title: questionnaire.title.clone(),
            question_count: questionnaire.question_count,
        });
    }
    Ok(())
}

pub(crate) fn withdraw_approval(
    ctx: &Ctx,
    Params(path): Params<QuestionPath>,
) -> Result<Versioned<Question>> {
    let (questionnaire, mut question) = find(ctx, &path)?;
    ctx.check_if_match(question.version)?;
    if question.status == QuestionStatus::Approved {
        withdraw(ctx, questionnaire, &mut question)?;
        ctx.documents().replace(&mut question)?;
    }
    versioned(ctx, question)
}

#[cfg(test)]
mod tests {
    use area_sdk::testing::FakeHost;
    use serde_json::json;

    use crate::rows::MOST_CELL_CHARACTERS;
    use crate::tests::{about, send};

    #[test]
    fn the_longest_answer_of_a_file_can_be_confirmed() {
        let host = FakeHost::new(crate::area());
        let answer = "é".repeat(MOST_CELL_CHARACTERS);
        let file = format!("ID,Question,Answer\n1,Why?,{answer}\n");
        let made = send(&host, "Long", file.as_bytes()).expect("imported");
        let confirm = |answer: &str| {
            host.call(about("answer_question", &made, 0).json(json!({ "answer": answer })))
        };
        assert_eq!(confirm(&answer).expect("confirmed").body["status"], "answered");
        assert!(confirm(&format!("{answer}é")).is_err());
    }
}
