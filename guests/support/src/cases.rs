//! Support cases and their operations.

use area_sdk::prelude::*;
use area_sdk::text::name;

use crate::triage;

/// Maximum number of support cases in the response of operation 11.
const LISTED: usize = 1_000;

/// Maximum size of the support cases in a response, and of one case, in bytes of JSON.
const MAX_BYTES: usize = 4 << 20;

/// Number of support cases in one page of a database query. Even cases of maximum size fit in the
/// memory of a call.
const READ_AT_ONCE: usize = 8;

/// Maximum number of notes in a support case.
const MOST_NOTES: usize = 200;

/// A request to open a support case.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewSupportCase {
    /// Subject of the support case, one line.
    #[schemars(length(min = 1, max = 200))]
    subject: String,
    /// Description of the problem and the expected behavior.
    #[schemars(length(min = 1, max = 20_000))]
    description: String,
}

/// A support case, as the API returns it.
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
    /// The case waits for a response: it has no note yet, or the latest is by its author.
    Open,
    /// The latest note is by a user other than the case's author.
    Answered,
    /// The case was closed; a new note opens it again.
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
    /// Returns the size of the support case in a response, in bytes of JSON, rounded up.
    fn size(&self) -> usize {
        let notes: usize = self.notes.iter().map(|note| note_size(&note.body)).sum();
        400 + escaped_size(&self.subject) + escaped_size(&self.description) + notes
    }
}

/// Returns the size of a note with this text, in bytes of JSON, rounded up.
fn note_size(body: &str) -> usize {
    200 + escaped_size(body)
}

/// Returns the size of a text in a JSON string, in bytes.
fn escaped_size(text: &str) -> usize {
    let size = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(size).sum()
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
    Ok(Created(case.versioned(SupportCase::from)))
}

/// Returns one page of the caller's support cases, newest first.
fn own(
    ctx: &Ctx,
    status: Option<&Status>,
    limit: usize,
    cursor: Option<String>,
) -> Result<Page<Stored<StoredCase>>> {
    let own = ctx.documents::<StoredCase>().query().equals("author_id", ctx.user());
    let own = own.equals_if("status", status.map(name)).cursor(cursor);
    Ok(own.limit(u32::try_from(limit).unwrap_or(u32::MAX)).page()?)
}

/// Reads the caller's support cases, at most `limit`, until the next one would exceed
/// [`MAX_BYTES`].
fn read(
    ctx: &Ctx,
    status: Option<&Status>,
    limit: usize,
    cursor: Option<String>,
) -> Result<Page<SupportCase>> {
    let (mut listed, mut bytes) = (Page { items: Vec::new(), next_cursor: cursor }, 0);
    loop {
        let most = READ_AT_ONCE.min(limit - listed.items.len());
        let mut found = own(ctx, status, most, listed.next_cursor.clone())?;
        let fits = |case: &&Stored<StoredCase>| {
            bytes += case.size();
            bytes <= MAX_BYTES
        };
        let fitting = found.items.iter().take_while(fits).count();
        // A case of a former version may exceed the maximum; it is a page of its own.
        let fitting = fitting.max(usize::from(listed.items.is_empty()));
        let full = fitting < found.items.len();
        if full && fitting == 0 {
            return Ok(listed);
        }
        if full {
            found = own(ctx, status, fitting, listed.next_cursor)?;
        }
        listed.items.extend(found.items.into_iter().map(SupportCase::from));
        listed.next_cursor = found.next_cursor;
        if full || listed.next_cursor.is_none() || listed.items.len() >= limit {
            return Ok(listed);
        }
    }
}

pub(crate) fn list(ctx: &Ctx) -> Result<Vec<SupportCase>> {
    Ok(read(ctx, None, LISTED, None)?.items)
}

/// Query parameters that filter the caller's cases.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListParams {
    /// Only cases with this status.
    status: Option<Status>,
}

pub(crate) fn page(
    ctx: &Ctx,
    Params(params): Params<ListParams>,
    paging: Paging,
) -> Result<Page<SupportCase>> {
    read(ctx, params.status.as_ref(), paging.limit as usize, paging.cursor)
}

/// Returns the support case with this id if the caller may read it, otherwise a 404. Users may read
/// their own cases, admins all.
fn visible(ctx: &Ctx, id: Uuid) -> Result<Stored<StoredCase>> {
    let case = ctx.documents::<StoredCase>().get(id)?;
    if case.author_id == ctx.user() || ctx.role() >= Role::Admin {
        Ok(case)
    } else {
        Err(Problem::not_found())
    }
}

pub(crate) fn show(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<SupportCase>> {
    Ok(visible(ctx, id)?.versioned(SupportCase::from))
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
    if case.notes.len() >= MOST_NOTES || case.size() + note_size(&new.body) > MAX_BYTES {
        let detail = "A case can have at most 200 notes and 4 MiB of text.";
        return Err(Problem::conflict("too_many_notes", detail)
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
    Ok(Created(case.versioned(SupportCase::from)))
}

pub(crate) fn close(ctx: &Ctx, Path(id): Path<Uuid>) -> Result<Versioned<SupportCase>> {
    let mut case = visible(ctx, id)?;
    ctx.check_if_match(case.version)?;
    if case.status != Status::Closed {
        case.status = Status::Closed;
        ctx.documents().replace(&mut case)?;
        ctx.publish(CaseClosed { case_id: id });
    }
    Ok(case.versioned(SupportCase::from))
}
