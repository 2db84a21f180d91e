//! Notes: the example area. It has two operations, one collection and one event.

use area_sdk::prelude::*;

/// Body of a request that creates a note.
#[derive(Deserialize, JsonSchema)]
struct NewNote {
    /// Text of the note.
    #[schemars(length(min = 1, max = 2000))]
    text: String,
}

/// A note as stored: the document of the collection `notes`.
#[derive(Serialize, Deserialize, JsonSchema)]
struct StoredNote {
    author_id: Uuid,
    text: String,
}

document!(StoredNote, "notes");

/// A note as returned to clients.
#[derive(Serialize, JsonSchema)]
struct Note {
    id: Uuid,
    author_id: Uuid,
    text: String,
    created_at: Timestamp,
}

/// Event that is published when a note was created.
#[derive(Serialize, JsonSchema)]
struct NoteCreated {
    note_id: Uuid,
}

event!(NoteCreated, "note.created");

#[derive(Deserialize, JsonSchema)]
struct ListParams {
    /// Only notes of this author.
    author_id: Option<Uuid>,
}

fn create(ctx: &Ctx, Body(new): Body<NewNote>) -> Result<Created<Note>> {
    let (id, author_id) = (ctx.new_id(), ctx.user());
    let note = StoredNote { author_id, text: new.text };
    ctx.documents().create(id, &note)?;
    ctx.publish(NoteCreated { note_id: id });
    Ok(Created(Note { id, author_id, text: note.text, created_at: ctx.now() }))
}

fn list(ctx: &Ctx, Params(params): Params<ListParams>, paging: Paging) -> Result<Page<Note>> {
    let notes = ctx.documents::<StoredNote>().query().equals_if("author_id", params.author_id);
    let page = notes.paging(paging).page()?;
    Ok(page.map(|note| Note {
        id: note.uuid(),
        created_at: note.created_at,
        author_id: note.value.author_id,
        text: note.value.text,
    }))
}

/// Declares this area: its operations, its collection and its event.
pub fn area() -> Area {
    Area::new("notes", env!("CARGO_PKG_VERSION"))
        .summary("Notes of a workspace")
        .collection(Collection::of::<StoredNote>().index(&["author_id"]))
        .event::<NoteCreated>("A user created a note")
        .routes([
            post("create_note", "/v1/workspaces/{workspace_id}/notes").handler(create),
            get("list_notes", "/v1/workspaces/{workspace_id}/notes").handler(list),
        ])
}

area_sdk::export!(area);
