//! Tests of what a recording contains, what it withholds, and how it is
//! replayed.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::config::RecordingsConfig;

const SECRET: &str = "the plaintext of this test";

fn about(id: &str) -> CallMetadata {
    CallMetadata {
        id: id.to_owned(),
        at: Timestamp(1_790_000_000_123_456),
        area: "notes".to_owned(),
        version: "1.0.0".to_owned(),
        digest: "ab".repeat(32),
        export: ExportKind::Handle,
        operation: "create_note".to_owned(),
        checked: false,
    }
}

fn recorder(sealed: Option<InputRedactionReason>, max_bytes: usize) -> Recorder {
    let recorder = Recorder::new(about("request-1"), sealed, max_bytes);
    recorder.begin(&json!({"body": SECRET}), [1; 32], RecordedLimits::default());
    recorder
}

fn finish(recorder: &Recorder) -> CallRecording {
    recorder.record_outcome(Some(RecordedOutcome::Answered(Some(json!({"body": SECRET})))));
    let text = serde_json::to_string(&recorder.finish().unwrap()).unwrap();
    CallRecording::read(&text).unwrap()
}

fn get_and_apply() -> CallRecording {
    let recorder = recorder(None, 10_000);
    recorder.record_call("documents.get", &("notes", "one"));
    recorder.record_result(&json!({"version": 1}));
    recorder.record_call("documents.apply", &("notes", [json!({"text": "a"})]));
    recorder.record_error(&json!({"VersionConflict": 2}));
    finish(&recorder)
}

#[test]
fn a_call_is_answered_as_it_was() {
    let player = Player::new(get_and_apply());
    let answer = player.answer("documents.get", &("notes", "one")).unwrap();
    assert!(
        matches!(&answer, HostCallResult::Ok(raw) if raw.get() == r#"{"version":1}"#),
        "{answer:?}"
    );
    let answer = player.answer("documents.apply", &("notes", [json!({"text": "a"})])).unwrap();
    assert!(
        matches!(&answer, HostCallResult::Error(raw) if raw.get() == r#"{"VersionConflict":2}"#)
    );
    assert_eq!(
        (player.mismatches(), player.stop_reason(), player.host_call_count()),
        (vec![], None, 2)
    );
}

#[test]
fn another_question_has_no_answer_and_another_write_has() {
    let player = Player::new(get_and_apply());
    player.answer("documents.get", &("notes", "one")).unwrap();
    player.answer("documents.apply", &("notes", [json!({"text": "b"})])).unwrap();
    assert_eq!((player.mismatches().len(), player.stop_reason()), (1, None));

    let player = Player::new(get_and_apply());
    let stop_reason = player.answer("documents.get", &("notes", "two")).unwrap_err();
    assert_eq!(
        (stop_reason, player.stop_reason()),
        (ReplayStopReason::NotRecorded, Some(ReplayStopReason::NotRecorded))
    );
    let mismatches = player.mismatches();
    let [HostCallMismatch { ordinal: 0, recorded: Some(recorded), replayed: Some(replayed) }] =
        mismatches.as_slice()
    else {
        panic!("{mismatches:?}");
    };
    assert_eq!(recorded.arguments, json!(["notes", "one"]));
    assert_eq!(replayed.arguments, json!(["notes", "two"]));
}

#[test]
fn calls_that_are_no_more_made_and_calls_beyond_the_last_are_told() {
    let player = Player::new(get_and_apply());
    player.answer("documents.get", &("notes", "one")).unwrap();
    let mismatches = player.mismatches();
    assert_eq!((mismatches[0].ordinal, &mismatches[0].replayed), (1, &None));

    player.answer("documents.apply", &("notes", [json!({"text": "a"})])).unwrap();
    assert_eq!(
        player.answer("settings.get", &("key",)).unwrap_err(),
        ReplayStopReason::NotRecorded
    );
    let mismatches = player.mismatches();
    assert_eq!((mismatches[0].ordinal, &mismatches[0].recorded), (2, &None));
}

#[test]
fn a_call_that_hands_over_a_secret_leaves_names_only() {
    let recorder = recorder(None, 10_000);
    recorder.record_call("documents.get", &("notes", SECRET));
    recorder.record_result(&SECRET);
    recorder.record_call("secrets.put", &("name", SECRET.as_bytes()));
    recorder.record_result(&());
    recorder.record_call("documents.apply", &("notes", SECRET));
    recorder.record_result(&SECRET);
    let recording = finish(&recorder);
    let text = serde_json::to_string(&recording).unwrap();
    let bytes = serde_json::to_string(SECRET.as_bytes()).unwrap();
    assert!(!text.contains(SECRET) && !text.contains(&bytes), "{text}");
    assert_eq!((recording.input.is_none(), recording.wasi_seed), (true, None));
    let names: Vec<&str> = recording.calls.iter().map(|call| call.call.as_str()).collect();
    assert_eq!(names, ["documents.get", "secrets.put", "documents.apply"]);
}

#[test]
fn what_is_made_with_a_secret_ends_the_recording_there() {
    for call in ["secrets.hmac_sha256", "links.sign", "membership.vouch", "egress.send"] {
        let recorder = Recorder::new(about("request-1"), None, 10_000);
        recorder.begin(&"input", [1; 32], RecordedLimits::default());
        recorder.record_call("settings.get", &("key",));
        recorder.record_result(&"value");
        recorder.record_call(call, &(SECRET,));
        recorder.record_result(&SECRET);
        let recording = finish(&recorder);
        let text = serde_json::to_string(&recording).unwrap();
        assert!(!text.contains(SECRET) && text.contains("value"), "{text}");
        let player = Player::new(recording);
        player.answer("settings.get", &("key",)).unwrap();
        assert_eq!(player.answer(call, &(SECRET,)).unwrap_err(), ReplayStopReason::Withheld);
        assert_eq!(player.mismatches(), vec![], "{call}");
    }
}

#[test]
fn of_a_request_that_may_bring_a_secret_there_is_no_input_and_no_message() {
    let recorder = recorder(Some(InputRedactionReason::WriteOnlyMember), 10_000);
    recorder.record_stack("0: fall_over\n1: handle\n");
    let message = Some(SECRET.to_owned());
    let fault = RecordedFault { kind: "contract".to_owned(), message, frames: Vec::new() };
    recorder.record_outcome(Some(RecordedOutcome::Fault(fault)));
    let recording = recorder.finish().unwrap();
    assert!(recording.input.is_none());
    let RecordedOutcome::Fault(fault) = recording.outcome else { panic!("a fault") };
    assert_eq!((fault.message, fault.frames.len()), (None, 2));
}

#[test]
fn a_call_that_says_too_much_is_not_kept() {
    let recorder = recorder(None, 200);
    recorder.record_call("documents.get", &("notes", "x".repeat(500)));
    recorder.record_result(&"y");
    recorder.record_outcome(Some(RecordedOutcome::Answered(None)));
    assert!(recorder.finish().is_none());
}

#[test]
fn another_format_is_refused_by_its_number() {
    let mut recording = serde_json::to_value(get_and_apply()).unwrap();
    recording["format"] = json!(2);
    let error = CallRecording::read(&recording.to_string()).unwrap_err().to_string();
    assert!(error.contains("format 2"), "{error}");
    recording["format"] = json!(1);
    recording["contract"] = json!("assurance:area@9.0.0");
    let error = CallRecording::read(&recording.to_string()).unwrap_err().to_string();
    assert!(error.contains("9.0.0"), "{error}");
}

#[tokio::test]
async fn the_oldest_make_room_for_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("recordings");
    let settings = RecordingsConfig { percent: 100.0, max_files: 2, ..RecordingsConfig::default() };
    let recordings = Recordings::open(settings, dir.clone()).unwrap();
    for id in ["one", "two", "three"] {
        let recorder = recordings.begin(about(id), None);
        recorder.begin(&json!({}), [1; 32], RecordedLimits::default());
        recorder.record_outcome(Some(RecordedOutcome::Answered(None)));
        recordings.keep(&Arc::clone(&recorder), true);
        let file = dir.join(format!("{id}.json"));
        while !file.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    let kept = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut kept: Vec<_> = kept.collect();
    kept.sort();
    assert_eq!(kept, ["three.json", "two.json"]);
}

#[test]
fn there_is_no_folder_before_something_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("recordings");
    let recordings = Recordings::open(RecordingsConfig::default(), dir.clone()).unwrap();
    assert!(!dir.exists() && !recordings.keeps_faults() && !recordings.is_sampled());
    recordings
        .set(RecordingsConfig { faults: true, percent: 100.0, ..RecordingsConfig::default() })
        .unwrap();
    assert!(dir.exists() && recordings.keeps_faults() && recordings.is_sampled());
    recordings.set(RecordingsConfig::default()).unwrap();
    assert!(!recordings.keeps_faults() && !recordings.is_sampled());
}
