//! Sign-in, the password and the second factor.

use assurance_tests::cli::Person;
use assurance_tests::examples::Recorder;
use assurance_tests::totp;
use serde_json::json;

const NEW_PASSWORD: &str = "another horse, another battery";

/// Signs in. The next calls use the session.
pub(super) async fn sign_in(recorder: &mut Recorder, ada: &Person) {
    let login = json!({ "email": ada.email, "password": ada.password });
    let answer = recorder.call("login", "", &login).await;
    recorder.client = recorder.client.with_session(&answer);
    recorder.act("get_session").await;
    recorder.act("get_security").await;
}

/// Enrolls an authenticator, uses its codes and removes it, then changes the password.
pub(super) async fn second_factor(recorder: &mut Recorder, ada: &Person) {
    let enrolled = recorder.act("enrol_authenticator").await;
    let secret = enrolled["secret"].as_str().expect("a secret").to_owned();
    let code = json!({ "code": totp::code(&secret, 0) });
    let confirmed = recorder.call("confirm_authenticator", "", &code).await;
    recorder.client = recorder.client.with_session(&confirmed);
    let next = json!({ "code": totp::code(&secret, 1) });
    let codes = recorder.send("renew_recovery_codes", next).await;
    let spare = json!({ "code": codes["recovery_codes"][0] });
    recorder.send("disable_authenticator", spare).await;
    let passwords = json!({ "current_password": ada.password, "new_password": NEW_PASSWORD });
    recorder.send("change_password", passwords).await;
}
