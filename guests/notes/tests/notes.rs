//! Tests of notes through a fake host.

use area_sdk::Uuid;
use area_sdk::testing::{FakeHost, Request, USER};
use serde_json::json;

#[test]
fn a_note_is_kept_listed_and_told_of() {
    let host = FakeHost::new(area_notes::area());
    let create = Request::to("create_note").json(json!({ "text": "Remember the milk." }));
    let note = host.call(create).expect("a note");
    assert_eq!((note.status, &note.body["author_id"]), (201, &json!(USER)));
    assert_eq!(host.events()[0].data["note_id"], note.body["id"]);

    let list = |author| host.call(Request::to("list_notes").with("author_id", author));
    assert_eq!(list(json!(USER)).expect("a page").body["items"], json!([note.body]));
    let nobody = Uuid::nil();
    assert_eq!(list(json!(nobody)).expect("a page").body["items"], json!([]));
}
