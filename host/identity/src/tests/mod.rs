//! Tests of identity on a real database: SQLite, and PostgreSQL if
//! `ASSURANCE_TEST_POSTGRES` names a server.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::*;
use assurance_core::domain::role::Role;
use assurance_store::Backend;
use assurance_store::testing::{TestStore, fresh};

const START: i64 = 1_700_000_000_000_000;
const PASSWORD: &str = "correct horse battery";
/// Maximum time that a test waits for an event.
const PATIENCE: Duration = Duration::from_secs(10);
const HERE: &str = "203.0.113.9";

/// A store, a manual clock, and one person.
struct TestNode {
    _fresh: TestStore,
    micros: Arc<AtomicI64>,
    store: Store,
    keys: Arc<Keys>,
    identity: IdentityService,
    ada: User,
}

impl TestNode {
    async fn new(backend: Backend, adapt: impl FnOnce(&mut Settings)) -> Option<Self> {
        let fresh = fresh(backend).await?;
        let store = fresh.store.clone();
        let mut settings = Settings::default();
        (settings.passwords.memory_kib, settings.passwords.iterations) = (64, 1);
        adapt(&mut settings);
        let micros = Arc::new(AtomicI64::new(START));
        let keys = Arc::new(Keys::new([7; 32]));
        let clock = Clock::Manual(Arc::clone(&micros));
        let identity = IdentityService::new(store.clone(), Arc::clone(&keys), clock, settings);
        let new = new_user(" Ada@Example.org ", Some(PASSWORD));
        let ada = identity.create_user(new).await.unwrap();
        Some(Self { _fresh: fresh, micros, store, keys, identity, ada })
    }

    fn pass(&self, seconds: i64) {
        self.micros.fetch_add(seconds * 1_000_000, Ordering::AcqRel);
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.micros.load(Ordering::Acquire))
    }

    /// Returns another process on the same database.
    fn other_node(&self) -> IdentityService {
        self.node_with(|_| {})
    }

    /// Returns another process on the same database, with changed settings.
    fn node_with(&self, adapt: impl FnOnce(&mut Settings)) -> IdentityService {
        let clock = Clock::Manual(Arc::clone(&self.micros));
        let mut settings = self.identity.0.settings.clone();
        adapt(&mut settings);
        IdentityService::new(self.store.clone(), Arc::clone(&self.keys), clock, settings)
    }

    async fn sign_in(&self, password: &str, code: Option<&str>) -> Result<NewSession, SignInError> {
        self.identity.sign_in(attempt("ada@example.org", password, code)).await
    }

    /// Enrolls an authenticator; returns session, secret and recovery codes.
    async fn with_second_factor(&self) -> (NewSession, Vec<u8>, Vec<String>) {
        let session = self.sign_in(PASSWORD, None).await.unwrap();
        let enrolment = self.identity.enroll_totp(&session.principal).await.unwrap();
        let secret = totp_rs::Secret::try_from_base32(enrolment.secret.as_str()).unwrap();
        let secret = secret.as_bytes().to_vec();
        let code = totp::code_at(&secret, self.now());
        let confirmed = self.identity.confirm_totp(&session.principal, &code).await.unwrap();
        self.pass(60);
        (confirmed.session, secret, confirmed.recovery_codes)
    }
}

/// Returns the time of a session's last use from the database.
async fn seen_at(place: &TestNode, session: &NewSession) -> Timestamp {
    let status = place.identity.security_status(&session.principal).await.unwrap();
    status.sessions[0].last_seen_at
}

fn new_user(email: &str, password: Option<&str>) -> NewUser {
    NewUser {
        email: email.into(),
        display_name: "X".into(),
        password: password.map(str::to_owned),
        email_verified: false,
    }
}

fn attempt(email: &str, password: &str, code: Option<&str>) -> SignInAttempt {
    SignInAttempt {
        email: email.into(),
        password: password.into(),
        code: code.map(str::to_owned),
        ip: Some(HERE.parse::<IpAddr>().unwrap()),
        user_agent: Some("test".into()),
        device: None,
    }
}

/// Defines a test for each database from one body.
macro_rules! people_on_both {
    ($(async fn $name:ident($place:ident $(, $adapt:expr)?) $body:block)*) => {
        $(mod $name {
            use super::*;

            async fn body($place: TestNode) $body

            async fn on(backend: Backend) {
                #[allow(unused_mut, unused_assignments, reason = "not every case adapts")]
                let mut adapt: fn(&mut Settings) = |_| {};
                $(adapt = $adapt;)?
                if let Some(place) = TestNode::new(backend, adapt).await {
                    body(place).await;
                }
            }

            #[tokio::test]
            async fn sqlite() {
                on(Backend::Sqlite).await;
            }

            #[tokio::test]
            async fn postgres() {
                on(Backend::Postgres).await;
            }
        })*
    };
}

mod access_tokens;
mod accounts;
mod members;
mod second_factor;

people_on_both! {
    async fn a_person_signs_in_is_recognised_and_signs_out(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        assert_eq!(made.principal.user.email, "ada@example.org");
        assert_eq!(made.cookie.len(), 43);
        let known = place.identity.authenticate(&made.cookie).await.unwrap().unwrap();
        assert_eq!((known.user.id, known.session.id), (place.ada.id, made.principal.session.id));
        assert!(place.identity.csrf_valid(&known, &made.csrf_token));
        assert!(place.identity.csrf_valid(&known, &place.identity.csrf_token(&known)));
        place.identity.sign_out(&known).await.unwrap();
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_none());
        for forged in ["", "x", &made.cookie[1..], &format!("{}A", made.cookie)] {
            assert!(place.identity.authenticate(forged).await.unwrap().is_none(), "{forged}");
        }
    }

    async fn unknown_people_and_wrong_passwords_get_one_answer(place) {
        for (email, password) in [("ada@example.org", "wrong"), ("bob@example.org", PASSWORD)] {
            let answer = place.identity.sign_in(attempt(email, password, None)).await;
            assert!(matches!(answer, Err(SignInError::WrongCredentials)), "{email} {answer:?}");
        }
        place.identity.create_user(new_user("eve@example.org", None)).await.unwrap();
        let answer = place.identity.sign_in(attempt("eve@example.org", "", None)).await;
        assert!(matches!(answer, Err(SignInError::WrongCredentials)), "{answer:?}");
    }

    async fn a_sign_in_runs_to_its_end_although_the_client_disconnects(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let dropped = futures::FutureExt::now_or_never(place.sign_in(PASSWORD, None));
        assert!(dropped.is_none());
        let ended = async {
            let status = async || place.identity.security_status(&made.principal).await.unwrap();
            while status().await.sessions.len() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.expect("a second session");
    }

    async fn guessing_slows_down_for_known_and_unknown_accounts_alike(place) {
        for email in ["ada@example.org", "nobody@example.org"] {
            for _ in 0..5 {
                let answer = place.identity.sign_in(attempt(email, "wrong", None)).await;
                assert!(matches!(answer, Err(SignInError::WrongCredentials)));
            }
            let answer = place.identity.sign_in(attempt(email, PASSWORD, None)).await;
            let Err(SignInError::TooManyAttempts { retry_at }) = answer else {
                panic!("{email}: {answer:?}");
            };
            assert_eq!(retry_at, place.now().plus_ms(1_000));
        }
        place.pass(1);
        assert!(place.sign_in(PASSWORD, None).await.is_ok());
        for _ in 0..4 {
            let answer = place.sign_in("wrong", None).await;
            assert!(matches!(answer, Err(SignInError::WrongCredentials)), "a success starts afresh");
        }
    }

    async fn parallel_guesses_are_all_counted(place) {
        let guess = || place.identity.sign_in(attempt("ada@example.org", "wrong", None));
        let answers = futures::future::join_all((0..12).map(|_| guess())).await;
        let tried =
            answers.iter().filter(|a| matches!(a, Err(SignInError::WrongCredentials))).count();
        assert_eq!(tried, 5);
    }

    async fn one_address_guessing_at_many_accounts_slows_down(place) {
        for n in 0..20 {
            let answer = place.identity.sign_in(attempt(&format!("{n}@x"), "wrong", None)).await;
            assert!(matches!(answer, Err(SignInError::WrongCredentials)));
        }
        let answer = place.sign_in(PASSWORD, None).await;
        assert!(matches!(answer, Err(SignInError::TooManyAttempts { .. })), "{answer:?}");
    }

    async fn an_address_s_failures_are_forgotten_while_others_sign_in_from_it(place) {
        for _ in 0..2 {
            for n in 0..19 {
                let answer = place.identity.sign_in(attempt(&format!("{n}@x"), "wrong", None)).await;
                assert!(matches!(answer, Err(SignInError::WrongCredentials)), "{answer:?}");
            }
            for _ in 0..2 {
                place.pass(31 * 60);
                place.sign_in(PASSWORD, None).await.unwrap();
            }
        }
    }

    async fn a_sign_in_that_was_not_judged_counts_for_nothing(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let found = place.store.read(async |c| store::users::by_email(c, "ada@example.org").await);
        let hash = found.await.unwrap().unwrap().1.unwrap();
        let store = async |hash: &str| {
            let ada = place.ada.id;
            place.store.write(async |c| store::users::set_password(c, ada, hash).await).await.unwrap();
        };
        store("damaged").await;
        for _ in 0..6 {
            let answer = place.sign_in(PASSWORD, None).await;
            assert!(matches!(answer, Err(SignInError::Host(_))), "{answer:?}");
            let change = PasswordChange {
                current: PASSWORD.into(),
                new: "another long password".into(),
                ip: Some(HERE.parse::<IpAddr>().unwrap()),
            };
            let answer = place.identity.change_password(&made.principal, change).await;
            let Err(ChangePasswordError::Current(SignInError::Host(_))) = answer else {
                panic!("{answer:?}");
            };
        }
        store(&hash).await;
        place.sign_in(PASSWORD, None).await.unwrap();
    }

    async fn an_unused_session_ends(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        place.pass(29 * 60);
        let known = place.identity.authenticate(&made.cookie).await.unwrap().unwrap();
        assert_eq!(known.session.last_seen_at, place.now(), "its use is noted");
        place.pass(29 * 60);
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_some());
        place.pass(30 * 60);
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_none());
    }

    async fn a_session_ends_however_much_it_is_used(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        for _ in 0..35 {
            place.pass(20 * 60);
            assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_some());
        }
        place.pass(20 * 60);
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_none());
    }

    async fn a_use_is_noted_once_a_minute(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        place.pass(59);
        let known = place.identity.authenticate(&made.cookie).await.unwrap().unwrap();
        assert_eq!(known.session.last_seen_at, Timestamp(START));
        place.pass(2);
        let known = place.identity.authenticate(&made.cookie).await.unwrap().unwrap();
        assert_eq!(known.session.last_seen_at, place.now());
    }

    async fn recognising_a_session_waits_for_nobody_who_writes(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        place.pass(61);
        let writer = place.store.writer().await.unwrap();
        let known = place.identity.authenticate(&made.cookie);
        let known = tokio::time::timeout(PATIENCE, known).await.expect("an answer").unwrap();
        assert_eq!(known.unwrap().session.last_seen_at, place.now());
        drop(writer);
        let noted = async {
            while seen_at(&place, &made).await != place.now() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, noted).await.expect("the use is noted");
    }

    async fn a_revocation_shows_here_at_once_and_elsewhere_within_a_second(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let other = place.other_node();
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_some());
        assert!(other.authenticate(&made.cookie).await.unwrap().is_some());
        let session = made.principal.session.id;
        assert!(place.identity.revoke(place.ada.id, session).await.unwrap());
        assert!(!place.identity.revoke(place.ada.id, session).await.unwrap());
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_none());
        place.pass(1);
        assert!(other.authenticate(&made.cookie).await.unwrap().is_none());
    }

    async fn without_a_cache_a_revocation_shows_everywhere_at_once(
        place, |settings| settings.session.cache_ms = 0
    ) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let other = place.other_node();
        assert!(other.authenticate(&made.cookie).await.unwrap().is_some());
        place.identity.sign_out(&made.principal).await.unwrap();
        assert!(other.authenticate(&made.cookie).await.unwrap().is_none());
    }

    async fn nobody_revokes_somebody_elses_session(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let session = made.principal.session.id;
        assert!(!place.identity.revoke(UserId::new(), session).await.unwrap());
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_some());
    }

    async fn the_oldest_session_beyond_ten_goes(place) {
        let mut made = Vec::new();
        for _ in 0..11 {
            made.push(place.sign_in(PASSWORD, None).await.unwrap());
            place.pass(1);
        }
        assert!(place.identity.authenticate(&made[0].cookie).await.unwrap().is_none());
        assert!(place.identity.authenticate(&made[1].cookie).await.unwrap().is_some());
        let status = place.identity.security_status(&made[10].principal).await.unwrap();
        assert_eq!(status.sessions.len(), 10);
        let current: Vec<_> = status.sessions.iter().filter(|s| s.current).collect();
        assert_eq!(current.len(), 1);
        assert_eq!(current[0].id, made[10].principal.session.id);
        assert_eq!(status.sessions[0].ip.as_deref(), Some(HERE));
        assert_eq!(status.sessions[0].user_agent.as_deref(), Some("test"));
    }

    async fn sign_ins_at_the_same_time_keep_to_the_limit(
        place, |settings| settings.session.max_per_user = 3
    ) {
        let answers =
            futures::future::join_all((0..5).map(|_| place.sign_in(PASSWORD, None))).await;
        let made: Vec<_> = answers.into_iter().filter_map(Result::ok).collect();
        assert!(made.len() >= 4, "{}", made.len());
        let status = place.identity.security_status(&made[0].principal).await.unwrap();
        assert_eq!(status.sessions.len(), 3);
    }

    async fn a_new_password_ends_every_session(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        place.identity.set_password(place.ada.id, "another long password").await.unwrap();
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_none());
        let old = place.sign_in(PASSWORD, None).await;
        assert!(matches!(old, Err(SignInError::WrongCredentials)), "{old:?}");
        assert!(place.sign_in("another long password", None).await.is_ok());
    }

    async fn a_password_replaced_while_somebody_signs_in_with_the_old_one_stays_replaced(
        place, |settings| settings.session.cache_ms = 0
    ) {
        let email = "ada@example.org";
        // The stored hash has older parameters than this node's settings.
        let renewing = place.node_with(|settings| settings.passwords.iterations = 2);
        for identity in [&place.identity, &renewing] {
            place.identity.set_password(place.ada.id, PASSWORD).await.unwrap();
            let address = Some(HERE.parse::<IpAddr>().unwrap());
            let source = attempts::ClientAddressAndDevice { address, device: None };
            let attempt = identity.begin_attempt(email, source, place.now()).await.unwrap();
            let proof = identity.check_password(email, PASSWORD).await.unwrap();
            place.identity.set_password(place.ada.id, "another long password").await.unwrap();
            let origin = sessions::SessionOrigin::default();
            let late = identity.complete_sign_in(&attempt, source, &proof, false, &origin).await;
            assert!(matches!(late, Err(store::Error::RunAgain)), "{late:?}");
            let old = identity.sign_in(self::attempt(email, PASSWORD, None)).await;
            assert!(matches!(old, Err(SignInError::WrongCredentials)), "{old:?}");
            let made = place.sign_in("another long password", None).await.unwrap();
            let status = place.identity.security_status(&made.principal).await.unwrap();
            assert_eq!(status.sessions.len(), 1);
        }
    }

    async fn sign_ins_at_the_same_time_renew_an_old_hash_once(place) {
        let renewing = place.node_with(|settings| settings.passwords.iterations = 2);
        let sign_in = || renewing.sign_in(attempt("ada@example.org", PASSWORD, None));
        for answer in futures::future::join_all([sign_in(), sign_in(), sign_in()]).await {
            answer.unwrap();
        }
        let proof = renewing.check_password("ada@example.org", PASSWORD).await.unwrap();
        assert!(proof.renewed.is_none());
    }

    async fn a_workspace_has_its_maker_as_owner_and_a_slug_of_its_own(place) {
        let identity = &place.identity;
        let made = identity.create_workspace(Some(place.ada.id), "Acme, Ltd.", None).await.unwrap();
        assert_eq!(made.slug, "acme-ltd");
        let membership = identity.membership(place.ada.id, made.id).await.unwrap().unwrap();
        assert_eq!(membership.role, Role::Owner);
        let taken = identity.create_workspace(None, "Other", Some("acme-ltd")).await;
        assert!(matches!(taken, Err(PeopleError::SlugTaken(_))), "{taken:?}");
        let second = identity.create_workspace(Some(place.ada.id), "Beta", None).await.unwrap();
        let (mine, next) = identity.workspaces_of(place.ada.id, None, 10).await.unwrap();
        assert_eq!(mine, [(made.clone(), Role::Owner), (second.clone(), Role::Owner)]);
        assert_eq!(next, None);
        let (first, next) = identity.workspaces_of(place.ada.id, None, 1).await.unwrap();
        assert_eq!(first, [(made.clone(), Role::Owner)]);
        let rest = identity.workspaces_of(place.ada.id, next.as_deref(), 10).await.unwrap();
        assert_eq!(rest, (vec![(second, Role::Owner)], None));
        let strangers = identity.workspaces_of(UserId::new(), next.as_deref(), 10).await;
        assert!(matches!(strangers, Err(store::Error::InvalidCursor)), "{strangers:?}");
        assert_eq!(identity.workspace("acme-ltd").await.unwrap(), made);
        assert_eq!(identity.workspace(&made.id.to_string()).await.unwrap(), made);
    }

    async fn members_and_flags_change_here_at_once(place) {
        let identity = &place.identity;
        let workspace = identity.create_workspace(None, "Acme", None).await.unwrap().id;
        let ada = place.ada.id;
        assert!(identity.membership(ada, workspace).await.unwrap().is_none());
        identity.put_member(workspace, ada, Role::Viewer).await.unwrap();
        let seen = identity.membership(ada, workspace).await.unwrap().unwrap();
        assert_eq!(seen.role, Role::Viewer);
        assert!(seen.has_feature("evidence_envelopes"));
        identity.put_member(workspace, ada, Role::Admin).await.unwrap();
        identity.set_flag(workspace, "evidence_envelopes", false).await.unwrap();
        let seen = identity.membership(ada, workspace).await.unwrap().unwrap();
        assert_eq!(seen.role, Role::Admin);
        assert!(!seen.has_feature("evidence_envelopes"));
        identity.set_flag(workspace, "evidence_envelopes", true).await.unwrap();
        let seen = identity.membership(ada, workspace).await.unwrap().unwrap();
        assert!(seen.has_feature("evidence_envelopes"));
        let mut reader = place.store.reader().await.unwrap();
        let members = store::memberships::members(&mut reader, workspace).await.unwrap();
        assert_eq!((members.len(), members[0].role), (1, Role::Admin));
        let one = store::memberships::member(&mut reader, workspace, ada).await.unwrap();
        assert_eq!(one.as_ref(), members.first());
    }

    async fn an_address_belongs_to_one_account_and_weak_passwords_to_none(place) {
        let create = |email, password| place.identity.create_user(new_user(email, Some(password)));
        let taken = create("ADA@example.org", PASSWORD).await;
        assert!(matches!(taken, Err(PeopleError::EmailTaken(_))), "{taken:?}");
        let weak = create("b@example.org", "short").await;
        assert!(matches!(weak, Err(PeopleError::InvalidPassword { least: 12 })), "{weak:?}");
    }

    async fn an_answer_lately_given_costs_no_question(place) {
        let made = place.sign_in(PASSWORD, None).await.unwrap();
        let workspace = place
            .identity
            .create_workspace(Some(place.ada.id), "Acme", None)
            .await
            .unwrap();
        place.identity.authenticate(&made.cookie).await.unwrap();
        place.identity.membership(place.ada.id, workspace.id).await.unwrap();
        place.store.close().await;
        assert!(place.identity.authenticate(&made.cookie).await.unwrap().is_some());
        assert!(place.identity.membership(place.ada.id, workspace.id).await.unwrap().is_some());
        place.pass(1);
        assert!(place.identity.authenticate(&made.cookie).await.is_err());
    }
}
