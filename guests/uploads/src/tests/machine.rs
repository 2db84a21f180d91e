//! Tests the stages against a model: an upload follows only the allowed transitions, whatever
//! clients, the job and time do in any order.

use area_sdk::Verdict;
use area_sdk::wit::Outcome;
use proptest::prelude::*;

use super::*;

/// An action on an upload.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    SendTooLittle,
    Complete,
    /// The job that checks the content runs one step, if the job is enqueued.
    Look,
    /// The expiry job runs.
    Expire,
    Minutes(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Send),
        1 => Just(Step::SendTooLittle),
        3 => Just(Step::Complete),
        6 => Just(Step::Look),
        2 => Just(Step::Expire),
        2 => (1..50_i64).prop_map(Step::Minutes),
    ]
}

/// Model of an upload: the expected state after each action.
struct Model {
    stage: &'static str,
    infected: bool,
    completed: bool,
    /// Minutes since the upload was announced.
    age: i64,
    /// Minutes since the last change of the stage.
    idle: i64,
}

impl Model {
    /// Applies an action to the model. Returns whether it succeeds.
    fn take(&mut self, step: Step) -> bool {
        let open = matches!(self.stage, "awaiting_upload" | "uploaded")
            && !self.completed
            && self.age < 60;
        match step {
            Step::Send if open => self.becomes("uploaded"),
            Step::Complete if self.completed => true,
            Step::Complete if open && self.stage == "uploaded" => {
                self.completed = true;
                self.becomes("uploaded")
            }
            Step::Send | Step::SendTooLittle | Step::Complete => false,
            Step::Look => self.look(),
            Step::Expire => self.expire(),
            Step::Minutes(minutes) => {
                self.age += minutes;
                self.idle += minutes;
                true
            }
        }
    }

    fn becomes(&mut self, stage: &'static str) -> bool {
        (self.stage, self.idle) = (stage, 0);
        true
    }

    fn look(&mut self) -> bool {
        match self.stage {
            "uploaded" if self.completed => self.becomes("scanning"),
            "scanning" if self.infected => self.becomes("rejected"),
            "scanning" => self.becomes("validating"),
            "validating" => self.becomes("ready"),
            _ => true,
        }
    }

    /// Models the expiry job: ends uploads that are not completed, and gives up those that the job
    /// has not changed for an hour.
    fn expire(&mut self) -> bool {
        match self.stage {
            "awaiting_upload" | "uploaded" if !self.completed => self.becomes("expired"),
            "uploaded" | "scanning" | "validating" if self.idle >= 60 => self.becomes("rejected"),
            _ => true,
        }
    }
}

/// Runs one step of the job in `job`, and stores its next step there.
fn look(host: &FakeHost, job: &mut Option<Value>) -> bool {
    let asked = host.take_jobs().into_iter().find(|job| job.kind == "process");
    let Some(payload) = asked.map(|job| job.payload).or_else(|| job.take()) else { return true };
    match host.run("process", payload, 1) {
        Ok(Outcome::Continue(next)) => *job = serde_json::from_str(&next).ok(),
        Ok(_) => *job = None,
        Err(_) => return false,
    }
    true
}

fn take(host: &FakeHost, upload: &Value, job: &mut Option<Value>, step: Step) -> bool {
    match step {
        Step::Send => host.call(sending(host, upload, SARIF)).is_ok(),
        Step::SendTooLittle => host.call(sending(host, upload, b"{}")).is_ok(),
        Step::Complete => host.call(to("complete_upload", upload)).is_ok(),
        Step::Look => look(host, job),
        Step::Expire => host.run("expire", json!({ "upload_id": upload["id"] }), 1).is_ok(),
        Step::Minutes(minutes) => {
            host.advance(minutes * 60);
            true
        }
    }
}

proptest! {
    #[test]
    fn an_upload_goes_its_ways_and_no_others(
        infected: bool,
        steps in proptest::collection::vec(step(), 1..24),
    ) {
        let host = host();
        let verdict = if infected { Verdict::Infected("x".to_owned()) } else { Verdict::Clean };
        host.scanner(move |_| Ok(verdict.clone()));
        let made = announce(&host, announcement("scan.sarif", SARIF));
        let mut model =
            Model { stage: "awaiting_upload", infected, completed: false, age: 0, idle: 0 };
        let mut job = None;
        for step in steps {
            let done = take(&host, &made, &mut job, step);
            prop_assert_eq!(done, model.take(step), "{:?}", step);
            let now = read(&host, &made);
            prop_assert_eq!(&now["validation_stage"], model.stage, "{:?}", step);
            let refused = matches!(model.stage, "rejected" | "expired");
            prop_assert_eq!(now["validation_error_code"].is_string(), refused);
        }
        let told = host.events().iter().filter(|event| event.name == "upload.ready").count();
        prop_assert_eq!(told, usize::from(model.stage == "ready"));
        prop_assert_eq!(stored(&host)["blob"].is_string(), model.stage == "ready");
    }
}
