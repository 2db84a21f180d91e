//! Tests of authenticator codes, recovery codes, and guessing.

use super::*;

people_on_both! {
    async fn a_second_factor_is_asked_for_and_its_confirmation_renews_the_session(place) {
        let before = place.sign_in(PASSWORD, None).await.unwrap();
        let (after, secret, _) = place.with_second_factor().await;
        assert_ne!(before.cookie, after.cookie);
        let status = place.identity.security_status(&after.principal).await.unwrap();
        assert!(status.mfa_enabled && !status.recovery_locked);
        assert_eq!((status.recovery_codes_remaining, status.sessions.len()), (10, 1), "other sessions end");
        for _ in 0..9 {
            let answer = place.sign_in(PASSWORD, None).await;
            assert!(matches!(answer, Err(SignInError::CodeRequired)), "never a failure: {answer:?}");
        }
        let code = totp::code_at(&secret, place.now());
        assert!(place.sign_in(PASSWORD, Some(&code)).await.is_ok());
        let again = place.sign_in(PASSWORD, Some(&code)).await;
        assert!(matches!(again, Err(SignInError::WrongCode)), "each step once: {again:?}");
        place.pass(31);
        let code = totp::code_at(&secret, place.now());
        assert!(place.sign_in(PASSWORD, Some(&code)).await.is_ok());
        let wrong = place.sign_in("wrong", Some(&code)).await;
        assert!(matches!(wrong, Err(SignInError::WrongCredentials)), "{wrong:?}");
    }

    async fn a_factor_confirmed_while_somebody_signs_in_without_a_code_refuses_the_sign_in(place) {
        let email = "ada@example.org";
        let address = Some(HERE.parse::<IpAddr>().unwrap());
        let source = attempts::ClientAddressAndDevice { address, device: None };
        let attempt = place.identity.begin_attempt(email, source, place.now()).await.unwrap();
        let proof = place.identity.check_password(email, PASSWORD).await.unwrap();
        let (session, _, _) = place.with_second_factor().await;
        let origin = sessions::SessionOrigin::default();
        let late = place.identity.complete_sign_in(&attempt, source, &proof, false, &origin).await;
        assert!(matches!(late, Err(store::Error::RunAgain)), "{late:?}");
        let status = place.identity.security_status(&session.principal).await.unwrap();
        assert_eq!(status.sessions.len(), 1);
    }

    async fn a_code_may_be_typed_with_the_spaces_that_authenticators_show(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let enrolment = place.identity.enroll_totp(&made.principal).await.unwrap();
        let secret = totp_rs::Secret::try_from_base32(enrolment.secret.as_str()).unwrap();
        let typed = || {
            let code = totp::code_at(secret.as_bytes(), place.now());
            format!(" {} {}", &code[..3], &code[3..])
        };
        place.identity.confirm_totp(&made.principal, &typed()).await.unwrap();
        place.pass(60);
        place.sign_in(PASSWORD, Some(&typed())).await.unwrap();
    }

    async fn one_code_at_the_same_time_signs_in_once(place) {
        let (_, secret, _) = place.with_second_factor().await;
        let code = totp::code_at(&secret, place.now());
        let answers =
            futures::future::join_all((0..4).map(|_| place.sign_in(PASSWORD, Some(&code)))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    }

    async fn an_unconfirmed_enrolment_counts_for_nothing(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        place.identity.enroll_totp(&made.principal).await.unwrap();
        assert!(place.sign_in(PASSWORD, None).await.is_ok());
        let wrong = place.identity.confirm_totp(&made.principal, "000000").await;
        assert!(matches!(wrong, Err(CodeError::Wrong)), "{wrong:?}");
        assert!(!place.identity.security_status(&made.principal).await.unwrap().mfa_enabled);
        let disabled = place.identity.disable_totp(&made.principal, "000000").await;
        assert!(matches!(disabled, Err(CodeError::NotEnrolled)), "{disabled:?}");
    }

    async fn a_recovery_code_is_good_once(place) {
        let (session, _, codes) = place.with_second_factor().await;
        let typed = codes[3].to_lowercase().replace('-', " ");
        assert!(place.sign_in(PASSWORD, Some(&typed)).await.is_ok());
        let again = place.sign_in(PASSWORD, Some(&codes[3])).await;
        assert!(matches!(again, Err(SignInError::WrongCode)), "{again:?}");
        let status = place.identity.security_status(&session.principal).await.unwrap();
        assert_eq!(status.recovery_codes_remaining, 9);
    }

    async fn five_wrong_codes_lock_recovery_until_the_authenticator_or_time_unlocks(place) {
        let (session, secret, codes) = place.with_second_factor().await;
        let locked = async || {
            place.identity.security_status(&session.principal).await.unwrap().recovery_locked
        };
        for _ in 0..5 {
            assert!(!locked().await);
            let answer = place.sign_in(PASSWORD, Some("AAAA-AAAA-AAAA-AAAA")).await;
            assert!(matches!(answer, Err(SignInError::WrongCode)), "{answer:?}");
        }
        assert!(locked().await);
        place.pass(30);
        let answer = place.sign_in(PASSWORD, Some(&codes[0])).await;
        assert!(matches!(answer, Err(SignInError::RecoveryLocked { .. })), "{answer:?}");
        place.pass(30);
        let code = totp::code_at(&secret, place.now());
        assert!(place.sign_in(PASSWORD, Some(&code)).await.is_ok());
        assert!(!locked().await);
        assert!(place.sign_in(PASSWORD, Some(&codes[0])).await.is_ok(), "it was not used up");
    }

    async fn a_recovery_lock_ends_with_time(
        place, |settings| settings.session.idle_minutes = 120
    ) {
        let (session, _, codes) = place.with_second_factor().await;
        for _ in 0..5 {
            let _ = place.identity.disable_totp(&session.principal, "999999").await;
        }
        let status = place.identity.security_status(&session.principal).await.unwrap();
        assert!(status.recovery_locked);
        place.pass(60 * 60);
        let status = place.identity.security_status(&session.principal).await.unwrap();
        assert!(!status.recovery_locked);
        assert!(place.identity.disable_totp(&session.principal, &codes[0]).await.is_ok());
    }

    async fn wrong_codes_far_apart_do_not_lock(place) {
        let (session, _, _) = place.with_second_factor().await;
        for _ in 0..8 {
            let _ = place.sign_in(PASSWORD, Some("AAAA-AAAA-AAAA-AAAA")).await;
            place.pass(4 * 60);
        }
        let status = place.identity.security_status(&session.principal).await.unwrap();
        assert!(!status.recovery_locked);
    }

    async fn a_signed_in_person_cannot_guess_codes_quickly_either(place) {
        let (session, _, _) = place.with_second_factor().await;
        for _ in 0..5 {
            let answer = place.identity.disable_totp(&session.principal, "999999").await;
            assert!(matches!(answer, Err(CodeError::Wrong)), "{answer:?}");
        }
        let answer = place.identity.disable_totp(&session.principal, "999999").await;
        assert!(matches!(answer, Err(CodeError::TooManyAttempts { .. })), "{answer:?}");
    }

    async fn a_right_code_is_no_failure_although_the_client_disconnects(place) {
        let (session, _, codes) = place.with_second_factor().await;
        let asking = place.identity.disable_totp(&session.principal, &codes[0]);
        assert!(futures::FutureExt::now_or_never(asking).is_none());
        let taken = async {
            let status = async || place.identity.security_status(&session.principal).await.unwrap();
            while status().await.recovery_codes_remaining > 9 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, taken).await.expect("the code is checked");
        for _ in 0..5 {
            let answer = place.identity.disable_totp(&session.principal, "999999").await;
            assert!(matches!(answer, Err(CodeError::Wrong)), "{answer:?}");
        }
    }

    async fn disabling_removes_everything_of_the_second_factor(place) {
        let (session, secret, _) = place.with_second_factor().await;
        let enrolled = place.identity.enroll_totp(&session.principal).await;
        assert!(matches!(enrolled, Err(CodeError::AlreadyEnabled)));
        let code = totp::code_at(&secret, place.now());
        place.identity.disable_totp(&session.principal, &code).await.unwrap();
        let status = place.identity.security_status(&session.principal).await.unwrap();
        assert!(!status.mfa_enabled);
        assert_eq!(status.recovery_codes_remaining, 0);
        assert!(place.sign_in(PASSWORD, None).await.is_ok());
    }

    async fn new_recovery_codes_take_the_place_of_the_old(place) {
        let (session, secret, old) = place.with_second_factor().await;
        let code = totp::code_at(&secret, place.now());
        let new = place.identity.renew_recovery_codes(&session.principal, &code).await.unwrap();
        let answer = place.sign_in(PASSWORD, Some(&old[0])).await;
        assert!(matches!(answer, Err(SignInError::WrongCode)), "{answer:?}");
        assert!(place.sign_in(PASSWORD, Some(&new[0])).await.is_ok());
    }
}
