//! Tests of changes to jobs of other areas and to members, made with the
//! commit.

use super::*;
use crate::{EnqueueJobRequest, MembershipError, QueueError};
use assurance_core::domain::id::JobId;
use assurance_core::domain::job::{JobStatus, Lane};
use assurance_core::domain::people::User;
use assurance_core::domain::queue::{JobFilter, JobForMembers};
use assurance_core::domain::role::Role;
use assurance_store::testing::on_both;
use assurance_store::{memberships, users};

/// Enqueues a job of the area in a call.
async fn enqueued(area: &Area) -> JobId {
    let (kind, payload) = ("tidy".into(), "{}".into());
    let wish = EnqueueJobRequest { kind, payload, ..EnqueueJobRequest::default() };
    area.commit(async |unit| unit.enqueue(wish).unwrap()).await
}

async fn seen(area: &Area, job: JobId) -> JobForMembers {
    area.unit().queued_job(job).await.unwrap().unwrap()
}

/// Creates a person, and a workspace for the area's calls.
async fn person(store: &Store, area: &Area) -> UserId {
    let email = format!("{}@example.org", UserId::new());
    let display_name = "Ada".to_owned();
    let user = User { id: UserId::new(), email, display_name, email_verified: true };
    let workspace = assurance_core::domain::people::Workspace {
        id: area.workspace,
        name: "Acme".into(),
        slug: area.workspace.to_string(),
        created_at: NOW,
    };
    let mut writer = store.writer().await.unwrap();
    users::insert(&mut writer, &user, None, NOW).await.unwrap();
    let _ = assurance_store::workspaces::insert(&mut writer, &workspace).await;
    user.id
}

/// A call of a person who uses a signed link.
fn joining(area: &Area, user: UserId) -> UnitOfWork {
    area.with(|spec| {
        spec.actor = Some(user);
        spec.by_link = true;
    })
}

async fn role(store: &Store, area: &Area, user: UserId) -> Option<Role> {
    let mut reader = store.reader().await.unwrap();
    let found = memberships::member(&mut reader, area.workspace, user).await.unwrap();
    found.map(|member| member.role)
}

on_both! {
    async fn a_job_is_cancelled_and_retried_with_the_commit(store: &Store) {
        let area = Area::installed(store).await;
        let job = enqueued(&area).await;
        let mut dropped = area.unit();
        dropped.cancel_job(job, "never".into()).await.unwrap();
        drop(dropped);
        assert_eq!(seen(&area, job).await.status, JobStatus::Queued);

        let told =
            area.commit(async |unit| unit.cancel_job(job, "by Ada".into()).await.unwrap()).await;
        assert_eq!(seen(&area, job).await, told);
        assert_eq!((told.status, told.last_error.as_deref()), (JobStatus::Failed, Some("by Ada")));

        let again = area.unit().cancel_job(job, "again".into()).await;
        assert_eq!(refused(again), QueueError::WrongStatus(JobStatus::Failed));
        area.commit(async |unit| unit.retry_job(job).await.unwrap()).await;
        let back = seen(&area, job).await;
        assert_eq!((back.status, back.attempts, back.position), (JobStatus::Queued, 0, Some(1)));
        let running = area.unit().retry_job(job).await;
        assert_eq!(refused(running), QueueError::WrongStatus(JobStatus::Queued));
    }

    async fn a_cancel_that_comes_too_late_is_run_again(store: &Store) {
        let area = Area::installed(store).await;
        let job = enqueued(&area).await;
        let mut first = area.unit();
        first.cancel_job(job, "first".into()).await.unwrap();
        let mut second = area.unit();
        second.cancel_job(job, "second".into()).await.unwrap();
        first.commit(CommitAdditions::default()).await.unwrap();
        let late = second.commit(CommitAdditions::default()).await;
        assert!(matches!(late, Err(Error::RunAgain)), "{late:?}");
        assert_eq!(seen(&area, job).await.last_error.as_deref(), Some("first"));
    }

    async fn no_job_of_another_workspace_is_seen_or_changed(store: &Store) {
        let area = Area::installed(store).await;
        let job = enqueued(&area).await;
        let elsewhere = area.elsewhere();
        assert_eq!(elsewhere.unit().queued_job(job).await.unwrap(), None);
        let theirs = elsewhere.unit().cancel_job(job, "theirs".into()).await;
        assert_eq!(refused(theirs), QueueError::NotFound);
        let (page, _) = elsewhere.unit().queue_page(&JobFilter::default(), None, 10).await.unwrap();
        assert_eq!(page, []);
        let loads = elsewhere.unit().lane_loads().await.unwrap();
        assert_eq!(loads[&Lane::Maintenance].queued, 0);
    }

    async fn a_deliverys_job_stays_and_a_reader_changes_nothing(store: &Store) {
        let area = Area::installed(store).await;
        area.commit(async |unit| unit.publish("item.made", "{}".into()).unwrap()).await;
        let delivery = area.unit().queue_overview(10).await.unwrap().remove(0);
        assert_eq!((delivery.kind.as_str(), delivery.area.as_str()), ("event", "other"));
        let cancelled = area.unit().cancel_job(delivery.id, "no".into()).await;
        assert_eq!(refused(cancelled), QueueError::NotCancellable);
        let misuse = |error| matches!(error, QueueError::Misuse(_));
        let mut reader = area.with(|spec| spec.writes = false);
        assert!(misuse(refused(reader.cancel_job(delivery.id, "no".into()).await)));
        for limit in [0, 501] {
            assert!(misuse(refused(area.unit().queue_overview(limit).await)), "{limit}");
        }
    }

    async fn a_new_member_belongs_with_the_commit_and_keeps_a_higher_role(store: &Store) {
        let area = Area::installed(store).await;
        let user = person(store, &area).await;
        let add = async |role| {
            let mut unit = joining(&area, user);
            unit.write("items", vec![create(&UserId::new().to_string(), "{}")]).await.unwrap();
            unit.add_member(user, role).await.unwrap();
            unit
        };
        drop(add(Role::Owner).await);
        assert_eq!(role(store, &area, user).await, None);
        for (given, kept) in [
            (Role::Viewer, Role::Viewer),
            (Role::Admin, Role::Admin),
            (Role::Member, Role::Admin),
            (Role::Owner, Role::Owner),
            (Role::Viewer, Role::Owner),
        ] {
            add(given).await.commit(CommitAdditions::default()).await.unwrap();
            assert_eq!(role(store, &area, user).await, Some(kept));
        }
        let unknown = UserId::new();
        let nobody = joining(&area, unknown).add_member(unknown, Role::Viewer).await;
        assert_eq!(refused(nobody), MembershipError::NoSuchUser);
    }

    async fn nobody_gives_a_role_above_their_own(store: &Store) {
        let area = Area::installed(store).await;
        let (user, caller) = (person(store, &area).await, person(store, &area).await);
        let by = |caller| area.with(|spec| spec.actor = caller);
        let misuse = |error| matches!(error, MembershipError::Misuse(_));
        let is_misuse = async |mut unit: UnitOfWork, user, role| {
            misuse(refused(unit.add_member(user, role).await))
        };
        assert!(is_misuse(by(None), user, Role::Viewer).await);
        assert!(is_misuse(by(Some(caller)), user, Role::Viewer).await);
        assert!(is_misuse(joining(&area, caller), user, Role::Viewer).await);
        let mut unit = joining(&area, caller);
        unit.add_member(caller, Role::Viewer).await.unwrap();
        unit.commit(CommitAdditions::default()).await.unwrap();
        for role in [Role::Member, Role::Admin, Role::Owner] {
            assert!(is_misuse(by(Some(caller)), user, role).await);
        }
        by(Some(caller)).add_member(user, Role::Viewer).await.unwrap();
        let late = area.unit().vouch("eve@example.org", NOW.plus_ms(31 * 86_400_000));
        assert!(misuse(refused(late)));
        assert!(area.unit().vouch("eve@example.org", NOW.plus_ms(7 * 86_400_000)).is_ok());
    }

    async fn an_account_is_found_by_its_address_in_any_case(store: &Store) {
        let area = Area::installed(store).await;
        let user = person(store, &area).await;
        let mut reader = store.reader().await.unwrap();
        let email = users::find(&mut reader, user).await.unwrap().unwrap().email;
        drop(reader);
        let found = area.unit().account(&email.to_uppercase()).await.unwrap();
        assert_eq!(found.map(|found| found.id), Some(user));
        assert_eq!(area.unit().account("nobody@example.org").await.unwrap(), None);
    }
}
