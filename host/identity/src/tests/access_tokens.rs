//! Tests of the use, end and number of access tokens.

use super::*;

async fn workspace(place: &TestNode) -> WorkspaceId {
    let name = UserId::new().to_string();
    place.identity.create_workspace(Some(place.ada.id), &name, None).await.unwrap().id
}

fn new(place: &TestNode, workspace: WorkspaceId) -> NewAccessToken {
    NewAccessToken {
        workspace,
        user: place.ada.id,
        name: "ci".into(),
        role: Role::Member,
        expires_at: place.now().plus_ms(86_400_000),
    }
}

async fn last_used(place: &TestNode, workspace: WorkspaceId) -> Option<Timestamp> {
    let (tokens, _) = place.identity.access_tokens_of(workspace, None, 10).await.unwrap();
    tokens[0].last_used_at
}

people_on_both! {
    async fn a_use_of_a_token_is_noted_at_most_once_a_minute(place) {
        let workspace = workspace(&place).await;
        let issued = place.identity.create_access_token(new(&place, workspace)).await.unwrap();
        assert_eq!(last_used(&place, workspace).await, None);
        let first = place.now();
        for _ in 0..3 {
            let known = place.identity.authenticate_token(&issued.secret).await.unwrap();
            let known = known.expect("a valid token");
            assert_eq!((known.user.id, known.token.id), (place.ada.id, issued.token.id));
            assert_eq!(last_used(&place, workspace).await, Some(first));
            place.pass(20);
        }
        place.identity.authenticate_token(&issued.secret).await.unwrap().unwrap();
        assert_eq!(last_used(&place, workspace).await, Some(first.plus_ms(60_000)));
    }

    async fn a_revoked_token_is_refused_here_at_once_and_elsewhere_within_a_second(place) {
        let workspace = workspace(&place).await;
        let issued = place.identity.create_access_token(new(&place, workspace)).await.unwrap();
        let other = place.other_node();
        for node in [&place.identity, &other] {
            assert!(node.authenticate_token(&issued.secret).await.unwrap().is_some());
        }
        assert!(place.identity.revoke_access_token(workspace, issued.token.id, None).await.unwrap());
        assert!(place.identity.authenticate_token(&issued.secret).await.unwrap().is_none());
        place.pass(1);
        assert!(other.authenticate_token(&issued.secret).await.unwrap().is_none());
    }

    async fn a_remembered_token_ends_in_time(place) {
        let workspace = workspace(&place).await;
        let expires_at = place.now().plus_ms(500);
        let short = NewAccessToken { expires_at, ..new(&place, workspace) };
        let issued = place.identity.create_access_token(short).await.unwrap();
        assert!(place.identity.authenticate_token(&issued.secret).await.unwrap().is_some());
        place.micros.fetch_add(500_000, Ordering::AcqRel);
        assert!(place.identity.authenticate_token(&issued.secret).await.unwrap().is_none());
        // The expired token is still listed. It is deleted when another token
        // is created 30 days later.
        assert!(!place.identity.access_tokens_of(workspace, None, 10).await.unwrap().0.is_empty());
        place.pass(30 * 86_400);
        place.identity.create_access_token(new(&place, workspace)).await.unwrap();
        assert_eq!(place.identity.access_tokens_of(workspace, None, 10).await.unwrap().0.len(), 1);
    }

    async fn of_tokens_made_at_the_same_time_none_is_beyond_the_limit(
        place, |settings| settings.access_tokens.max_per_workspace = 2
    ) {
        let workspace = workspace(&place).await;
        let create = || place.identity.create_access_token(new(&place, workspace));
        let (one, two, three) = tokio::join!(create(), create(), create());
        let refused: Vec<_> = [one, two, three].into_iter().filter_map(Result::err).collect();
        assert!(matches!(refused[..], [CreateAccessTokenError::TooMany(2)]), "{refused:?}");
    }

    async fn a_token_has_a_maker_and_no_higher_role(place) {
        let workspace = workspace(&place).await;
        let owner = NewAccessToken { role: Role::Owner, ..new(&place, workspace) };
        let refused = place.identity.create_access_token(owner).await;
        assert!(matches!(refused, Err(CreateAccessTokenError::RoleTooHigh(Role::Admin))), "{refused:?}");
        let stranger = NewAccessToken { user: UserId::new(), ..new(&place, workspace) };
        let refused = place.identity.create_access_token(stranger).await;
        assert!(matches!(refused, Err(CreateAccessTokenError::NotAMember)), "{refused:?}");
        place.identity.disable(place.ada.id).await.unwrap();
        let refused = place.identity.create_access_token(new(&place, workspace)).await;
        assert!(matches!(refused, Err(CreateAccessTokenError::NotAMember)), "{refused:?}");
    }
}
