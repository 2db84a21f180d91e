//! E-mail of an invitation. The job's first step collects the content. The second step signs the
//! tokens and sends the e-mail, without an open transaction while the mail server responds. The
//! third step stores the delivery, so that a refused write does not send the e-mail again.

use area_sdk::prelude::*;
use area_sdk::text::name;
use area_sdk::{JobError, JobOptions, MailError, Message};

use crate::invitation::{LatestEmailDelivery, Status, StoredInvitation};
use crate::respond::{ACCEPT, DECLINE, InvitationLinkClaims};

/// Subject of every invitation's e-mail.
const SUBJECT: &str = "Invitation to a workspace";

/// Maximum number of attempts to send an e-mail. The first ones have the pauses of the lane, the
/// others [`PAUSE_SECONDS`]: together longer than an invitation is valid, so a mail server that is
/// unavailable or a daily limit only delays the e-mail.
pub(crate) const ATTEMPTS: u32 = 100;
const QUICK_ATTEMPTS: u32 = 12;
const PAUSE_SECONDS: i64 = 2 * 3600;

/// Job that sends the e-mail of an invitation.
#[derive(Serialize, Deserialize)]
pub(crate) struct SendInvitationJob {
    invitation_id: Uuid,
    /// Value of [`StoredInvitation::sent`] for this e-mail. After a newer one is enqueued, this one
    /// is not sent.
    #[serde(default)]
    sent: Option<u32>,
    /// Public base URL of the service, for the links in the e-mail.
    base_url: String,
    /// Content of the e-mail; `None` before the first step.
    letter: Option<MailVariables>,
    /// Time at which the e-mail was sent; `None` before.
    #[serde(default)]
    delivered_at: Option<Timestamp>,
}

/// Content of an invitation's e-mail without its tokens.
#[derive(Serialize, Deserialize)]
struct MailVariables {
    workspace: String,
    /// Display name of the inviting user; `None` if unknown.
    inviter: Option<String>,
    has_account: bool,
}

/// Signed tokens in the links of an invitation's e-mail.
struct EmailLinkTokens {
    accept: String,
    decline: String,
    /// Token to register an account with the address; `None` if an account exists.
    register: Option<String>,
}

job!(SendInvitationJob, "send_invitation");

/// Enqueues the e-mail of an invitation.
pub(crate) fn post(ctx: &Ctx, invitation: &Stored<StoredInvitation>) {
    let (id, base_url) = (invitation.uuid(), ctx.base_url().to_owned());
    let sent = Some(invitation.sent);
    let job =
        SendInvitationJob { invitation_id: id, sent, base_url, letter: None, delivered_at: None };
    ctx.enqueue_with(&job, JobOptions { resource: Some(id), ..JobOptions::default() });
}

pub(crate) fn send(ctx: &JobCtx, job: SendInvitationJob) -> JobResult<SendInvitationJob> {
    if let Some(sent_at) = job.delivered_at {
        LatestEmailDelivery::record(ctx, job.invitation_id, sent_at)?;
        return Ok(Outcome::Done);
    }
    let found = ctx.documents::<StoredInvitation>().find(job.invitation_id)?;
    let is_due = |found: &Stored<StoredInvitation>| {
        found.status_at(ctx.now()) == Status::Pending
            && job.sent.is_none_or(|sent| sent == found.sent)
    };
    let Some(invitation) = found.filter(is_due) else {
        return Ok(Outcome::Done);
    };
    let Some(letter) = &job.letter else {
        let letter = Some(MailVariables::about(ctx, &invitation));
        return Ok(Outcome::Continue(SendInvitationJob { letter, ..job }));
    };
    let tokens = EmailLinkTokens::sign(ctx, &invitation, letter);
    let app_url = ctx.setting("app_url");
    let message = Message {
        to: invitation.email.clone(),
        // The subject contains no text from users, because mail filters and readers trust it.
        subject: SUBJECT.to_owned(),
        text: letter.text(&invitation, &tokens, app_url.as_deref(), &job.base_url),
    };
    match ctx.send_mail(&message) {
        Ok(()) => {
            let delivered_at = Some(ctx.now());
            Ok(Outcome::Continue(SendInvitationJob { delivered_at, ..job }))
        }
        Err(MailError::Unavailable(why)) if ctx.attempt() > QUICK_ATTEMPTS => {
            let at = ctx.now().plus_seconds(PAUSE_SECONDS);
            Ok(Outcome::Retry(at, format!("mail: {why}")))
        }
        Err(MailError::Unavailable(why)) => Err(JobError::Retry(format!("mail: {why}"))),
        Err(MailError::Refused(why) | MailError::Rejected(why)) => {
            Err(JobError::Fail(format!("mail: {why}")))
        }
        Err(MailError::NotInAJob) => panic!("mail outside a job"),
    }
}

impl EmailLinkTokens {
    fn sign(scope: &Scope, invitation: &Stored<StoredInvitation>, letter: &MailVariables) -> Self {
        let until = invitation.expires_at;
        let claims = InvitationLinkClaims { invitation_id: invitation.uuid() };
        let vouch = || scope.vouch(&invitation.email, until);
        Self {
            accept: scope.sign_link(ACCEPT, &claims, until),
            decline: scope.sign_link(DECLINE, &claims, until),
            register: (!letter.has_account).then(vouch),
        }
    }
}

impl MailVariables {
    fn about(scope: &Scope, invitation: &StoredInvitation) -> Self {
        let (workspace, _) = scope.workspace();
        let inviter = scope.member(invitation.invited_by);
        Self {
            workspace,
            inviter: inviter.map(|inviter| inviter.display_name),
            has_account: scope.account(&invitation.email).is_some(),
        }
    }

    fn text(
        &self,
        invitation: &StoredInvitation,
        tokens: &EmailLinkTokens,
        app_url: Option<&str>,
        base_url: &str,
    ) -> String {
        let inviter = self.inviter.as_deref().unwrap_or("An admin");
        let role = name(&invitation.role);
        let until = invitation.expires_at;
        let how = match app_url {
            Some(app_url) => tokens.as_links(app_url),
            None => tokens.as_requests(base_url),
        };
        format!(
            "Hello,\n\n{inviter} invites you to the workspace \"{}\", in the role \
            {role}.\n\n{how}\nThe invitation is for {} and valid until {until}. If you did not \
            expect it, you can ignore it.\n",
            self.workspace, invitation.email
        )
    }
}

impl EmailLinkTokens {
    /// Formats links to the operator's web application. The tokens are in the fragment, which
    /// browsers do not send to the server.
    fn as_links(&self, app_url: &str) -> String {
        let register = match &self.register {
            Some(token) => format!("&register={token}"),
            None => String::new(),
        };
        let Self { accept, decline, .. } = self;
        format!(
            "To accept:  {app_url}#accept={accept}{register}\n\
             To decline: {app_url}#decline={decline}{register}\n"
        )
    }

    /// Formats HTTP requests, for users who call the API directly.
    fn as_requests(&self, base_url: &str) -> String {
        let account = match &self.register {
            Some(token) => format!(
                "You have no account yet. Create one first:\nPOST \
                {base_url}/v1/auth/register\n{{\"token\": \"{token}\", \"display_name\": \"...\", \
                \"password\": \"...\"}}\n\n"
            ),
            None => format!("Sign in first: POST {base_url}/v1/auth/login\n\n"),
        };
        let Self { accept, decline, .. } = self;
        format!(
            "{account}The response sets a cookie and has a csrf_token. Send the cookie with one of \
             these requests, and the token as X-CSRF-Token.\n\n\
             To accept:\nPOST {base_url}/v1/invitations/accept?token={accept}\n\n\
             To decline:\nPOST {base_url}/v1/invitations/decline?token={decline}\n"
        )
    }
}
