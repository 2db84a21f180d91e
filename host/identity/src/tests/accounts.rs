//! Tests of new passwords, and of operators' changes to accounts.

use super::*;

const NEW: &str = "another long password";

fn change(current: &str, new: &str) -> PasswordChange {
    let ip = Some(HERE.parse::<IpAddr>().unwrap());
    PasswordChange { current: current.into(), new: new.into(), ip }
}

people_on_both! {
    async fn a_person_replaces_the_password_and_keeps_the_session(place) {
        let (made, other) =
            (place.sign_in(PASSWORD, None).await.unwrap(), place.sign_in(PASSWORD, None).await.unwrap());
        for _ in 0..3 {
            let wrong = place.identity.change_password(&made.principal, change("wrong", NEW)).await;
            let Err(ChangePasswordError::Current(SignInError::WrongCredentials)) = wrong else {
                panic!("{wrong:?}");
            };
        }
        let weak = place.identity.change_password(&made.principal, change(PASSWORD, "short")).await;
        let Err(ChangePasswordError::New(PeopleError::InvalidPassword { least: 12 })) = weak else {
            panic!("{weak:?}");
        };
        place.identity.change_password(&made.principal, change(PASSWORD, NEW)).await.unwrap();
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_some());
        assert!(place.identity.authenticate(&other.cookie).await.unwrap().is_none());
        for _ in 0..5 {
            let old = place.sign_in(PASSWORD, None).await;
            assert!(matches!(old, Err(SignInError::WrongCredentials)), "failures start afresh: {old:?}");
        }
        place.pass(1);
        place.sign_in(NEW, None).await.unwrap();
    }

    async fn guesses_of_the_current_password_count_as_failed_sign_ins(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        for _ in 0..5 {
            place.identity.change_password(&made.principal, change("wrong", NEW)).await.unwrap_err();
        }
        let late = place.identity.change_password(&made.principal, change(PASSWORD, NEW)).await;
        let Err(ChangePasswordError::Current(SignInError::TooManyAttempts { .. })) = late else {
            panic!("{late:?}");
        };
        let here = place.sign_in(PASSWORD, None).await;
        assert!(matches!(here, Err(SignInError::TooManyAttempts { .. })), "{here:?}");
    }

    async fn a_change_runs_to_its_end_although_the_client_disconnects(place) {
        let (made, other) =
            (place.sign_in(PASSWORD, None).await.unwrap(), place.sign_in(PASSWORD, None).await.unwrap());
        let changing = place.identity.change_password(&made.principal, change(PASSWORD, NEW));
        assert!(futures::FutureExt::now_or_never(changing).is_none());
        let ended = async {
            while place.identity.authenticate(&other.cookie).await.unwrap().is_some() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("the password is changed");
        place.sign_in(NEW, None).await.unwrap();
    }

    async fn a_password_set_meanwhile_stays(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let changes = (0..4).map(|n| {
            let (identity, principal) = (&place.identity, &made.principal);
            async move { identity.change_password(principal, change(PASSWORD, &format!("{NEW} {n}"))).await }
        });
        let changes = futures::future::join_all(changes).await;
        let won: Vec<usize> = (0..4).filter(|n| changes[*n].is_ok()).collect();
        assert_eq!(won.len(), 1, "{changes:?}");
        for lost in changes.into_iter().filter_map(Result::err) {
            let ChangePasswordError::Current(SignInError::WrongCredentials) = lost else {
                panic!("{lost:?}");
            };
        }
        place.pass(60);
        place.sign_in(&format!("{NEW} {}", won[0]), None).await.unwrap();
    }

    async fn a_disabled_account_gets_the_response_to_a_wrong_password(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let workspace = place.identity.create_workspace(Some(place.ada.id), "Acme", None).await.unwrap();
        let other = place.other_node();
        assert!(other.authenticate(&made.cookie).await.unwrap().is_some());
        assert!(place.identity.membership(place.ada.id, workspace.id).await.unwrap().is_some());
        assert_eq!(place.identity.disable(place.ada.id).await.unwrap(), 1);
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_none());
        assert!(place.identity.membership(place.ada.id, workspace.id).await.unwrap().is_none());
        place.pass(1);
        assert!(other.authenticate(&made.cookie).await.unwrap().is_none());
        for password in [PASSWORD, "wrong"] {
            let refused = place.sign_in(password, None).await;
            assert!(matches!(refused, Err(SignInError::WrongCredentials)), "{refused:?}");
        }
        let issued = place.identity.issue(place.ada.clone(), "test").await;
        assert!(matches!(issued, Err(PeopleError::Disabled(_))), "{issued:?}");
        place.identity.enable(place.ada.id).await.unwrap();
        place.sign_in(PASSWORD, None).await.unwrap();
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_none(), "it has ended");
        let nobody = place.identity.disable(UserId::new()).await;
        assert!(matches!(nobody, Err(store::Error::NotFound)), "{nobody:?}");
    }

    async fn an_account_disabled_while_somebody_signs_in_stays_signed_out(place) {
        let email = "ada@example.org";
        let source = attempts::ClientAddressAndDevice { address: Some(HERE.parse().unwrap()), device: None };
        let keys = place.identity.begin_attempt(email, source, place.now()).await.unwrap();
        let proof = place.identity.check_password(email, PASSWORD).await.unwrap();
        place.identity.disable(place.ada.id).await.unwrap();
        let origin = sessions::SessionOrigin::default();
        let late = place.identity.complete_sign_in(&keys, source, &proof, false, &origin).await;
        assert!(matches!(late, Err(store::Error::RunAgain)), "{late:?}");
    }

    async fn a_reset_removes_the_second_factor_and_ends_every_session(place) {
        let (session, _, codes) = place.with_second_factor().await;
        assert_eq!(place.identity.reset_factor(place.ada.id).await.unwrap(), (true, 1));
        assert!(place.identity.authenticate(&session.cookie).await.unwrap().is_none());
        let fresh = place.sign_in(PASSWORD, None).await.unwrap();
        let code = place.identity.disable_totp(&fresh.principal, &codes[0]).await;
        assert!(matches!(code, Err(CodeError::NotEnrolled)), "{code:?}");
        assert_eq!(place.identity.reset_factor(place.ada.id).await.unwrap(), (false, 1));
    }
}
