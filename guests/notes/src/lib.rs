//! Notes: the newcomer's example. Two operations, one collection, one event.

use area_sdk::prelude::*;

/// What a client sends.
#[derive(Deserialize, JsonSchema)]
struct NewNote {
    /// What to remember.
    #[schemars(length(min = 1, max = 2000))]
    text: String,
}

/// What is kept.
#[derive(Serialize, Deserialize, JsonSchema)]
struct StoredNote {
    author_id: Uuid,
    text: String,
}

impl Document for StoredNote {
    const COLLECTION: &'static str = "notes";
}

/// What a client gets.
#[derive(Serialize, JsonSchema)]
struct Note {
    id: Uuid,
    author_id: Uuid,
    text: String,
    created_at: Timestamp,
}

/// What other areas and webhooks are told.
#[derive(Serialize, JsonSchema)]
struct NoteCreated {
    note_id: Uuid,
}

impl Event for NoteCreated {
    const NAME: &'static str = "note.created";
}

#[derive(Deserialize, JsonSchema)]
struct ListParams {
    /// Only this author's.
    author_id: Option<Uuid>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

fn create(ctx: &Ctx, Body(new): Body<NewNote>) -> Result<Created<Note>> {
    let (id, author_id) = (ctx.new_id(), ctx.user());
    let note = StoredNote { author_id, text: new.text };
    ctx.documents().create(id, &note)?;
    ctx.publish(NoteCreated { note_id: id });
    Ok(Created(Note { id, author_id, text: note.text, created_at: ctx.now() }))
}

fn list(ctx: &Ctx, Params(params): Params<ListParams>) -> Result<Page<Note>> {
    let notes = ctx.documents::<StoredNote>().query().equals_if("author_id", params.author_id);
    let page = notes.cursor(params.cursor).page()?;
    Ok(page.map(|note| Note {
        id: note.uuid(),
        created_at: note.created_at,
        author_id: note.value.author_id,
        text: note.value.text,
    }))
}

/// The area.
pub fn area() -> Area {
    Area::new("notes", env!("CARGO_PKG_VERSION"))
        .summary("Notes of a workspace")
        .collection(Collection::of::<StoredNote>().text("author_id").index(&["author_id"]))
        .event::<NoteCreated>("Somebody wrote a note")
        .route(post("create_note", "/v1/workspaces/{workspace_id}/notes").handler(create))
        .route(get("list_notes", "/v1/workspaces/{workspace_id}/notes").handler(list))
}

area_sdk::export!(area);
