//! Support cases and their operations.

use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::triage;

/// Maximum number of cases in the response of operation 11.
const LISTED: usize = 1_000;

/// Total size of the cases' texts, in bytes, after which the response contains no further cases.
/// Below the maximum size of an area's reply.
const LISTED_BYTES: usize = 4 << 20;

/// Number of cases in one page of the database query.
const READ_AT_ONCE: u32 = 50;

/// Maximum number of notes in a case.
const MOST_NOTES: usize = 200;

/// A request to open a support case.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewSupportCase {
    /// Subject, one line.
    #[schemars(length(min = 1, max = 200))]
    subject: String,
    /// Description of the problem and the expected behavior.
    #[schemars(length(min = 1, max = 20_000))]
    description: String,
}

/// A support case.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SupportCase {
    category: triage::Category,
    created_at: Timestamp,
    description: String,
    id: Uuid,
    /// Time of the latest note by a user other than the author; null if there is none.
    latest_response_at: Option<Timestamp>,
    notes: Vec<Note>,
    priority: triage::Priority,
    status: Status,
    subject: String,
    updated_at: Timestamp,
}

/// Status of a support case.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The case waits for a response.
    Open,
    /// A user other than the author added a note.
    Answered,
    /// The case was closed.
    Closed,
}

/// A note in a support case.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Note {
    id: Uuid,
    author_id: Uuid,
    body: String,
    created_at: Timestamp,
}

/// A stored support case. Id and times are those of the document.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoredCase {
    author_id: Uuid,
    subject: String,
    description: String,
    category: triage::Category,
    priority: triage::Priority,
    status: Status,
    notes: Vec<Note>,
    latest_response_at: Option<Timestamp>,
}

document!(StoredCase, "cases");

impl StoredCase {
    fn text_bytes(&self) -> usize {
        let notes: usize = self.notes.iter().map(|note| note.body.len()).sum();
        self.subject.len() + self.description.len() + notes
    }
}

impl From<Stored<StoredCase>> for SupportCase {
    fn from(case: Stored<StoredCase>) -> Self {
        Self {
            id: case.uuid(),
            created_at: case.created_at,
            updated_at: case.updated_at,
            category: case.value.category,
            description: case.value.description,
            latest_response_at: case.value.latest_response_at,
            notes: case.value.notes,
            priority: case.value.priority,
            status: case.value.status,
            subject: case.value.subject,
        }
    }
}

/// Published when a support case was opened.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CaseCreated {
    case_id: Uuid,
    author_id: Uuid,
    subject: String,
    category: triage::Category,
    priority: triage::Priority,
}

event!(CaseCreated, "support_case.created");

/// Published when a note was added to a support case.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CaseAnswered")]
pub(crate) struct CaseNoteAdded {
    case_id: Uuid,
    note_id: Uuid,
    author_id: Uuid,
}

event!(CaseNoteAdded, "support_case.note_added");

/// Published when a support case was closed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CaseClosed {
    case_id: Uuid,
}

event!(CaseClosed, "support_case.closed");

pub(crate) fn create(
    ctx: &Ctx,
    Body(new): Body<NewSupportCase>,
) -> Result<Created<Versioned<SupportCase>>> {
    let (category, priority) = triage::triage(&new.subject, &new.description);
    let id = ctx.new_id();
    let case = StoredCase {
        author_id: ctx.user(),
        subject: new.subject,
        description: new.description,
        category,
        priority,
        status: Status::Open,
        notes: Vec::new(),
        latest_response_at: None,
    };
    let case = ctx.documents().create_stored(id, case)?;
    ctx.publish(CaseCreated {
        case_id: id,
        author_id: case.author_id,
        subject: case.subject.clone(),
        category,
        priority,
    });
    Ok(Created(Versioned(case.into(), 1)))
}

pub(crate) fn list(ctx: &Ctx) -> Result<Vec<SupportCase>> {
    let (mut listed, mut bytes, mut cursor) = (Vec::new(), 0, None);
    loop {
        let own = ctx.documents::<StoredCase>().query().equals("author_id", ctx.user());
        let page = own.cursor(cursor).limit(READ_AT_ONCE).page()?;
        bytes += page.items.iter().map(|case| case.text_bytes()).sum::<usize>();
        listed.extend(page.items.into_iter().map(SupportCase::from));
        cursor = page.next_cursor;
        if cursor.is_none() || listed.len() >= LISTED || bytes >= LISTED_BYTES {
            return Ok(listed);
        }
    }
}

/// Query parameters that filter the caller's cases.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "PageParams")]
pub(crate) struct ListParams {
    /// Only cases with this status.
    status: Option<Status>,
}

pub(crate) fn page(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<SupportCase>> {
    let own = ctx.documents::<StoredCase>().query().equals("author_id", ctx.user());
    let own = own.equals_if("status", params.status.as_ref().map(name));
    Ok(own.paging(paging).page()?.map(SupportCase::from))
}

/// Returns a case that the caller may read, or a 404: the caller's own cases; any case for an
/// admin.
fn visible(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredCase>> {
    let case = ctx.documents::<StoredCase>().get(id)?;
    if case.author_id == ctx.user() || ctx.role() >= Role::Admin {
        Ok(case)
    } else {
        Err(Problem::not_found())
    }
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<SupportCase>> {
    let case = visible(ctx, id)?;
    let version = case.version;
    Ok(Versioned(case.into(), version))
}

/// A request to add a note to a support case.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewNote {
    /// Text of the note.
    #[schemars(length(min = 1, max = 20_000))]
    body: String,
}

pub(crate) fn add_note(
    ctx: &Ctx,
    Path(id): Path<Uuid>,
    Body(new): Body<NewNote>,
) -> Result<Created<Versioned<SupportCase>>> {
    let mut case = visible(ctx, id)?;
    if case.notes.len() >= MOST_NOTES {
        return Err(Problem::conflict("too_many_notes", "A case can have at most 200 notes.")
            .hint("Open a new case and refer to this one."));
    }
    let (author_id, created_at) = (ctx.user(), ctx.now());
    let note = Note { id: ctx.new_id(), author_id, body: new.body, created_at };
    ctx.publish(CaseNoteAdded { case_id: id, note_id: note.id, author_id });
    case.status = if author_id == case.author_id { Status::Open } else { Status::Answered };
    if author_id != case.author_id {
        case.latest_response_at = Some(created_at);
    }
    case.notes.push(note);
    ctx.documents().replace(&mut case)?;
    let version = case.version;
    Ok(Created(Versioned(case.into(), version)))
}

pub(crate) fn close(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<SupportCase>> {
    let mut case = visible(ctx, id)?;
    ctx.check_if_match(case.version)?;
    if case.status != Status::Closed {
        case.status = Status::Closed;
        ctx.documents().replace(&mut case)?;
        ctx.publish(CaseClosed { case_id: id });
    }
    let version = case.version;
    Ok(Versioned(case.into(), version))
}
