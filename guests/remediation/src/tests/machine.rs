//! Property tests of the state machine.

use area_sdk::Uuid;
use area_sdk::testing::USER;
use area_sdk::text::name;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{REPOSITORY, REVIEWER, World, step};
use crate::state::ProgramState;

/// An action on a program.
#[derive(Clone, Copy, Debug)]
enum Step {
    Transition(Uuid, ProgramState),
    Audit(u32),
}

fn steps() -> impl Strategy<Value = Step> {
    let state = prop::sample::select(&ProgramState::ALL[..]);
    let user = prop::sample::select(vec![USER, REVIEWER]);
    prop_oneof![
        3 => (user, state).prop_map(|(user, state)| Step::Transition(user, state)),
        1 => (0_u32..4).prop_map(Step::Audit),
    ]
}

/// All transitions that users may request: state before and state after.
const ALLOWED: [(&str, &str); 8] = [
    ("draft", "in_review"),
    ("draft", "cancelled"),
    ("in_review", "approved"),
    ("in_review", "rejected"),
    ("in_review", "cancelled"),
    ("approved", "active"),
    ("approved", "cancelled"),
    ("active", "cancelled"),
];

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

/// Whether the steps are verified in order, the next step is ready, and the program is completed
/// only when all steps are verified.
fn is_well_formed(program: &Value) -> bool {
    let states: Vec<&str> = program["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| text(&step["state"]))
        .collect();
    let verified = states.iter().take_while(|state| **state == "verified").count();
    let expected = |index: usize| match index {
        index if index < verified => "verified",
        index if index == verified => "ready",
        _ => "blocked",
    };
    let completed = program["state"] == "completed";
    let ordered = states.iter().enumerate().all(|(index, state)| *state == expected(index));
    let dated = completed != program["completed_at"].is_null();
    ordered && dated && completed == (verified == states.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_path_keeps_the_rules(path in prop::collection::vec(steps(), 1..40)) {
        let world = World::new();
        let plan = json!([step("findings.open < 3"), step("findings.open == 0")]);
        let program = world.ask_for(&plan).expect("a program");
        let mut before = program.clone();
        for (number, taken) in path.into_iter().enumerate() {
            match taken {
                Step::Transition(by, to) => {
                    let to = name(&to);
                    let edge = (text(&before["state"]), to.as_str());
                    let verdict = ["approved", "rejected"].contains(&to.as_str());
                    let allowed = ALLOWED.contains(&edge) && !(verdict && by == USER);
                    let asked = world.transition(&program, by, &to);
                    prop_assert_eq!(asked.is_ok(), allowed, "{:?}", edge);
                }
                Step::Audit(open) => {
                    world.audit(number as u128, REPOSITORY, open);
                    let moved = world.show(&program)["state"] != before["state"];
                    prop_assert!(!moved || before["state"] == "active");
                }
            }
            let after = world.show(&program);
            prop_assert!(is_well_formed(&after), "{after}");
            let reviewed = ["approved", "active", "completed", "rejected"];
            prop_assert!(!reviewed.contains(&text(&after["state"])) || after["reviewed_by"] == json!(REVIEWER));
            before = after;
        }
    }
}
