//! Tests of members who leave or are removed.

use super::*;

/// Creates a workspace owned by Ada, with another member in a role.
async fn workspace_with(place: &TestNode, role: Role) -> (WorkspaceId, UserId) {
    let name = UserId::new().to_string();
    let made = place.identity.create_workspace(Some(place.ada.id), &name, None).await.unwrap();
    (made.id, add(place, made.id, role).await)
}

async fn add(place: &TestNode, workspace: WorkspaceId, role: Role) -> UserId {
    let new = new_user(&format!("{}@example.org", UserId::new()), None);
    let user = place.identity.create_user(new).await.unwrap().id;
    place.identity.put_member(workspace, user, role).await.unwrap();
    user
}

people_on_both! {
    async fn who_removes_whom(place) {
        const ROLES: [Role; 4] = [Role::Viewer, Role::Member, Role::Admin, Role::Owner];
        let (workspace, _) = workspace_with(&place, Role::Owner).await;
        for own in ROLES {
            let caller = add(&place, workspace, own).await;
            for theirs in ROLES {
                let user = add(&place, workspace, theirs).await;
                let removed = place.identity.remove_member_by(caller, workspace, user, None).await;
                let may = own >= Role::Admin && own >= theirs;
                assert_eq!(removed.is_ok(), may, "{own} removes {theirs}: {removed:?}");
                let still = place.identity.membership(user, workspace).await.unwrap();
                assert_eq!(still.is_none(), may);
            }
            let stranger = place.identity.remove_member_by(caller, workspace, UserId::new(), None).await;
            let expected = if own >= Role::Admin { "the person is not" } else { "removing this" };
            assert!(stranger.unwrap_err().to_string().starts_with(expected), "{own}");
            place.identity.remove_member_by(caller, workspace, caller, None).await.unwrap();
            let gone = place.identity.remove_member_by(caller, workspace, place.ada.id, None).await;
            assert!(matches!(gone, Err(RemoveMemberError::NotAMember)), "{gone:?}");
        }
    }

    async fn of_two_owners_who_leave_at_the_same_time_one_stays(place) {
        for _ in 0..5 {
            let (workspace, bea) = workspace_with(&place, Role::Owner).await;
            let leave = |user| place.identity.remove_member_by(user, workspace, user, None);
            let (ada, bea) = tokio::join!(leave(place.ada.id), leave(bea));
            let refused = [ada, bea].into_iter().filter_map(Result::err).collect::<Vec<_>>();
            assert!(matches!(refused[..], [RemoveMemberError::LastOwner]), "{refused:?}");
        }
    }

    async fn the_role_of_the_last_owner_who_can_sign_in_is_not_lowered(place) {
        let (workspace, bea) = workspace_with(&place, Role::Admin).await;
        let put = |user, role| place.identity.put_member(workspace, user, role);
        let ada = place.ada.id;
        for role in [Role::Viewer, Role::Member, Role::Admin] {
            let lowered = put(ada, role).await;
            assert!(matches!(lowered, Err(PeopleError::LastOwner)), "{lowered:?}");
        }
        put(ada, Role::Owner).await.unwrap();
        put(bea, Role::Owner).await.unwrap();
        place.identity.disable(bea).await.unwrap();
        assert!(matches!(put(ada, Role::Viewer).await, Err(PeopleError::LastOwner)));
        place.identity.enable(bea).await.unwrap();
        put(ada, Role::Viewer).await.unwrap();
        let seen = place.identity.membership(ada, workspace).await.unwrap().unwrap();
        assert_eq!(seen.role, Role::Viewer);
    }

    async fn of_two_owners_who_are_lowered_or_leave_at_the_same_time_one_stays(place) {
        for _ in 0..5 {
            let (workspace, bea) = workspace_with(&place, Role::Owner).await;
            let lower = place.identity.put_member(workspace, place.ada.id, Role::Admin);
            let leave = place.identity.remove_member(workspace, bea);
            match tokio::join!(lower, leave) {
                (Ok(()), Err(RemoveMemberError::LastOwner))
                | (Err(PeopleError::LastOwner), Ok(())) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn a_removal_shows_here_at_once_and_elsewhere_within_a_second(place) {
        let (workspace, bea) = workspace_with(&place, Role::Admin).await;
        let other = place.other_node();
        assert!(other.membership(bea, workspace).await.unwrap().is_some());
        assert!(place.identity.membership(bea, workspace).await.unwrap().is_some());
        place.identity.remove_member(workspace, bea).await.unwrap();
        assert!(place.identity.membership(bea, workspace).await.unwrap().is_none());
        place.pass(1);
        assert!(other.membership(bea, workspace).await.unwrap().is_none());
        // Roles are read from the database, not from the node's cache.
        let late = other.remove_member_by(bea, workspace, place.ada.id, None).await;
        assert!(matches!(late, Err(RemoveMemberError::NotAMember)), "{late:?}");
    }
}

#[test]
fn a_name_changes_neither_the_line_nor_the_direction_of_a_mail() {
    assert_eq!(people::checked_name(" שלום Ada ").unwrap(), "שלום Ada");
    for name in ["", "Ada\nLovelace", "Ada\u{202e}moc.elpmaxe", "\u{2066}Ada"] {
        assert!(matches!(people::checked_name(name), Err(PeopleError::InvalidName)), "{name:?}");
    }
}
