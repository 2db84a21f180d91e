//! Demonstration workspace of `assurance serve --demo`: a user, a workspace, a session, an evidence
//! producer with its key, and a webhook subscription. Existing parts are kept. The session lasts
//! for ten years; `assurance demo session` creates another one.
//!
//! Users and workspaces are created through the store, as other commands do. Everything else is
//! created through the API of the running service.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use assurance_core::config::{Config, FlagOverrides, files};
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::people::{User, Workspace};
use assurance_core::domain::time::Timestamp;
use assurance_core::signing::Ed25519PrivateKey;
use assurance_identity::{IdentityService, NewUser, PeopleError, SESSION_COOKIE};
use assurance_service::app::App;
use assurance_service::open::{open, open_and_migrate};

use super::operators::serving;
use super::{CommonOptions, input, output};

const EMAIL: &str = "demo@example.com";
const WORKSPACE: &str = "Demonstration";
/// URL of the webhook subscription. Nothing listens there unless a developer
/// starts a receiver.
const RECEIVER: &str = "http://127.0.0.1:8090/hooks";
/// Areas that the demonstration uses: `evidence` for the producer, `webhooks` for the subscription,
/// `support` for the event of the subscription and for a printed command.
const AREAS: [&str; 3] = ["evidence", "support", "webhooks"];
/// Command that opens a support case, for a shell that has read `demo.env`.
const SUPPORT_CASE: &str = r#"
  curl -s -b "$DEMO_COOKIE" -H "X-CSRF-Token: $DEMO_CSRF_TOKEN" -H 'Idempotency-Key: first-case' \
    -H 'Content-Type: application/json' -d '{"subject":"Hello","description":"My first case"}' \
    "$DEMO_API/v1/workspaces/$DEMO_WORKSPACE_ID/support/cases""#;
/// Variables of the example requests in `/reference`.
const EXAMPLE_VARIABLES: &str =
    "COOKIE=$DEMO_COOKIE\nCSRF_TOKEN=$DEMO_CSRF_TOKEN\nWORKSPACE_ID=$DEMO_WORKSPACE_ID\n";
/// Timeout of a request to the service that was just started.
const PATIENCE: Duration = Duration::from_secs(30);

/// Duration of the demonstration's sessions, in hours: ten years.
const SESSION_HOURS: u32 = 87_600;
/// Sessions that end within this time from now are renewed at start, in milliseconds.
const RENEWED_BEFORE_MS: i64 = 30 * 24 * 3_600_000;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Sign in the demonstration user again, and write the new session to demo.json and demo.env in
    /// the data folder.
    Session,
}

impl Command {
    pub(super) async fn run(self, common: &CommonOptions) -> anyhow::Result<()> {
        let Self::Session = self;
        let config = common.load_with(flags(FlagOverrides::default()))?;
        let file = config.data_dir.join(FILE);
        anyhow::ensure!(
            file.exists(),
            "there is no demonstration in {}; `assurance serve --demo` makes one",
            config.data_dir.display()
        );
        let identity = open(&config).await?.identity;
        let mut demo = PreparedDemo { kept: read(&file)?, file, made: false };
        demo.sign_in(&identity).await?;
        let api = serving(&config)?.map_or_else(|| config.base_url(), |serving| serving.api);
        demo.write_variables(&api)?;
        common.print_values(&[
            ("cookie", json!(demo.kept.cookie)),
            ("csrf_token", json!(demo.kept.csrf_token)),
            ("variables", json!(demo.variables())),
        ]);
        Ok(())
    }
}

/// Returns the areas that the demonstration uses and the service does not have.
pub(super) fn missing_areas(app: &App) -> Vec<&'static str> {
    let live = app.registry.snapshot();
    AREAS.into_iter().filter(|area| live.area(area).is_none()).collect()
}

/// Adds the demonstration's settings: plain HTTP and webhook receivers on loopback, and long
/// sessions.
pub(super) fn flags(flags: FlagOverrides) -> FlagOverrides {
    flags
        .set("development", Some(true))
        .set("egress.allow_loopback", Some(true))
        .set("session.cookie_secure", Some(false))
        .set("session.absolute_hours", Some(SESSION_HOURS))
        .set("session.idle_minutes", Some(SESSION_HOURS * 60))
}

/// Name of the file in the data folder with the state of the demonstration.
const FILE: &str = "demo.json";

/// Content of `demo.json` in the data folder, mode 0600. `demo.env` has the
/// same values for a shell.
#[derive(Debug, Serialize, Deserialize)]
struct DemoState {
    email: String,
    password: String,
    workspace_id: WorkspaceId,
    cookie: String,
    csrf_token: String,
    key_file: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    producer_id: Option<String>,
    key_id: Option<String>,
    webhook_secret: Option<String>,
}

/// State of the demonstration, prepared before the service binds its listeners.
#[derive(Debug)]
pub(super) struct PreparedDemo {
    kept: DemoState,
    file: PathBuf,
    made: bool,
}

impl PreparedDemo {
    /// Creates the user, the workspace and the session, or renews an expiring session. The caller
    /// holds the lock of the database, which is migrated.
    pub(super) async fn prepare(config: &Config) -> anyhow::Result<Self> {
        files::private_dir(&config.data_dir)?;
        // Absolute path, so that the printed commands work in any folder.
        let dir = std::fs::canonicalize(&config.data_dir)?;
        let file = dir.join(FILE);
        let opened = open_and_migrate(config).await?;
        let identity = opened.identity;
        if file.exists() {
            let mut demo = Self { kept: read(&file)?, file, made: false };
            demo.renew_session(&identity, opened.clock.now()).await?;
            return Ok(demo);
        }
        let kept = first(&identity, &dir).await?;
        let demo = Self { kept, file, made: true };
        demo.keep()?;
        Ok(demo)
    }

    async fn renew_session(
        &mut self,
        identity: &IdentityService,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let cookie = self.kept.cookie.strip_prefix(&format!("{SESSION_COOKIE}="));
        let found = identity.authenticate(cookie.unwrap_or_default()).await?;
        let ends_at = found.map(|found| found.session.expires_at);
        if ends_at.is_some_and(|end| end.ms_since(now) > RENEWED_BEFORE_MS) {
            return Ok(());
        }
        self.sign_in(identity).await
    }

    async fn sign_in(&mut self, identity: &IdentityService) -> anyhow::Result<()> {
        (self.kept.cookie, self.kept.csrf_token) = session(identity, &self.kept.email).await?;
        self.keep()
    }

    /// Creates the missing parts through the API of the running service, and prints how to use
    /// them. Leaves out what needs one of the areas `missing`, until a start with that area.
    pub(super) async fn finish(mut self, api: &str, missing: &[&str]) -> anyhow::Result<()> {
        self.create_missing(api, missing).await.with_context(|| {
            let file = self.file.display();
            format!("to make another demonstration, remove {file} and start the service again")
        })?;
        self.write_variables(api)?;
        if let Err(error) = output::try_line(self.next_steps(api, missing)) {
            tracing::warn!(%error, "cannot print how to call the demonstration");
        }
        Ok(())
    }

    /// Creates the producer, its key and the webhook subscription. Each id is stored at once,
    /// because the API refuses a second producer with the name.
    async fn create_missing(&mut self, api: &str, missing: &[&str]) -> anyhow::Result<()> {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        let client = DemoClient { http, api };
        let has = |area: &str| !missing.contains(&area);
        if has("evidence") && self.kept.key_id.is_none() && self.kept.producer_id.is_none() {
            self.kept.producer_id = Some(client.producer(&self.kept).await?);
            self.keep()?;
        }
        if has("evidence")
            && self.kept.key_id.is_none()
            && let Some(producer) = &self.kept.producer_id
        {
            self.kept.key_id = Some(client.key(&self.kept, producer).await?);
            self.keep()?;
        }
        if has("webhooks") && has("support") && self.kept.webhook_secret.is_none() {
            self.kept.webhook_secret = Some(client.webhook(&self.kept).await?);
            self.keep()?;
        }
        Ok(())
    }

    fn variables(&self) -> PathBuf {
        self.file.with_extension("env")
    }

    fn write_variables(&self, api: &str) -> anyhow::Result<()> {
        replace_private(&self.variables(), self.kept.shell_variables(api).as_bytes())
    }

    fn keep(&self) -> anyhow::Result<()> {
        replace_private(&self.file, &serde_json::to_vec_pretty(&self.kept)?)
    }

    /// Returns the text that shows how to call the demonstration.
    fn next_steps(&self, api: &str, missing: &[&str]) -> String {
        let DemoState { workspace_id, email, password, .. } = &self.kept;
        let had = if self.made { "made" } else { "found, unchanged" };
        let left_out = if missing.is_empty() {
            String::new()
        } else {
            let areas = missing.join(", ");
            format!("\n  missing areas   {areas}; start with them to create what needs them")
        };
        let support_case = if missing.contains(&"support") { "" } else { SUPPORT_CASE };
        format!(
            "
The Workspace Assurance Service answers on {api}
  documentation   {api}/reference  and  {api}/openapi.json
  demonstration   workspace {workspace_id} ({had})
  sign-in         {email}  {password}{left_out}
  all of it is kept in {file}, and as shell variables in {variables}

Next, in another terminal with sh, bash or zsh:

  . {variables}
  curl -s -b \"$DEMO_COOKIE\" \"$DEMO_API/v1/auth/session\"{support_case}
",
            file = self.file.display(),
            variables = quoted(&self.variables().to_string_lossy()),
        )
    }
}

impl DemoState {
    /// Returns the state as shell assignments, the content of `demo.env`.
    fn shell_variables(&self, api: &str) -> String {
        let variables: [(&str, &str); 9] = [
            ("API", api),
            ("EMAIL", &self.email),
            ("PASSWORD", &self.password),
            ("WORKSPACE_ID", &self.workspace_id.to_string()),
            ("COOKIE", &self.cookie),
            ("CSRF_TOKEN", &self.csrf_token),
            ("KEY_FILE", &self.key_file.to_string_lossy()),
            ("KEY_ID", self.key_id.as_deref().unwrap_or_default()),
            ("WEBHOOK_SECRET", self.webhook_secret.as_deref().unwrap_or_default()),
        ];
        variables.map(|(name, value)| format!("DEMO_{name}={}\n", quoted(value))).concat()
            + EXAMPLE_VARIABLES
    }
}

/// Quotes a text so that a POSIX shell reads it as one word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Reads the state of the demonstration from `demo.json`.
fn read(file: &Path) -> anyhow::Result<DemoState> {
    let text = files::read_private(file)?;
    serde_json::from_slice(&text).with_context(|| {
        format!("{} is not what this command wrote; remove it to begin anew", file.display())
    })
}

/// Replaces a private file atomically.
fn replace_private(file: &Path, content: &[u8]) -> anyhow::Result<()> {
    files::replace_private(file, content, true)
        .with_context(|| format!("cannot write {}", file.display()))
}

async fn first(identity: &IdentityService, data_dir: &Path) -> anyhow::Result<DemoState> {
    let password = input::generated_password();
    let user = user(identity, &password).await?;
    let workspace = workspace(identity, &user).await?;
    let key_file = data_dir.join("demo-producer.pem");
    if !key_file.exists() {
        files::create_private(&key_file, Ed25519PrivateKey::generate().to_pem()?.as_bytes())?;
    }
    let (cookie, csrf_token) = session(identity, EMAIL).await?;
    Ok(DemoState {
        email: EMAIL.to_owned(),
        password: password.to_string(),
        workspace_id: workspace.id,
        cookie,
        csrf_token,
        key_file,
        producer_id: None,
        key_id: None,
        webhook_secret: None,
    })
}

/// Creates the demonstration user. Sets the password of an existing one, whose `demo.json` was
/// removed or never written.
async fn user(identity: &IdentityService, password: &str) -> anyhow::Result<User> {
    match identity.user_by_email(EMAIL).await {
        Ok(user) => {
            identity.set_password(user.id, password).await?;
            Ok(user)
        }
        Err(PeopleError::NoSuchUser(_)) => {
            let user = NewUser {
                email: EMAIL.to_owned(),
                display_name: "Demo".to_owned(),
                password: Some(password.to_owned()),
                email_verified: true,
            };
            Ok(identity.create_user(user).await?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Creates a workspace, with a random slug if an earlier demonstration has the usual one.
async fn workspace(identity: &IdentityService, owner: &User) -> anyhow::Result<Workspace> {
    let created = match identity.create_workspace(Some(owner.id), WORKSPACE, None).await {
        Err(PeopleError::SlugTaken(slug)) => {
            let slug = format!("{slug}-{}", &WorkspaceId::new().0.simple().to_string()[20..]);
            identity.create_workspace(Some(owner.id), WORKSPACE, Some(&slug)).await
        }
        created => created,
    };
    Ok(created?)
}

async fn session(identity: &IdentityService, email: &str) -> anyhow::Result<(String, String)> {
    let user = identity.user_by_email(email).await?;
    let session = identity.issue(user, "demonstration").await?;
    Ok((format!("{SESSION_COOKIE}={}", session.cookie), session.csrf_token))
}

/// API client that is signed in as the demonstration user.
struct DemoClient<'a> {
    http: reqwest::Client,
    api: &'a str,
}

impl DemoClient<'_> {
    /// Creates an evidence producer through the API and returns its id.
    async fn producer(&self, kept: &DemoState) -> anyhow::Result<String> {
        let name = json!({"name": "demo-scanner", "description": "Signs demonstration evidence"});
        self.post(kept, "evidence-producers", &name, "id").await
    }

    /// Adds the demonstration's public key to an evidence producer and returns the key's id.
    async fn key(&self, kept: &DemoState, producer: &str) -> anyhow::Result<String> {
        let pem = files::read_private(&kept.key_file)?;
        let key = Ed25519PrivateKey::from_pem(std::str::from_utf8(&pem)?)?;
        let public = json!({"public_key": key.public_key_base64()});
        self.post(kept, &format!("evidence-producers/{producer}/keys"), &public, "key_id").await
    }

    /// Creates a webhook subscription and returns its secret.
    async fn webhook(&self, kept: &DemoState) -> anyhow::Result<String> {
        let wish = json!({"url": RECEIVER, "events": ["support_case.created"]});
        self.post(kept, "webhooks", &wish, "secret").await
    }

    /// Sends a POST and returns the text `member` of the response.
    async fn post(
        &self,
        kept: &DemoState,
        path: &str,
        body: &Json,
        member: &str,
    ) -> anyhow::Result<String> {
        let url = format!("{}/v1/workspaces/{}/{path}", self.api, kept.workspace_id);
        let request = self.http.post(url).header("Cookie", &kept.cookie);
        let request = request.header("X-CSRF-Token", &kept.csrf_token).json(body);
        let response = request.send().await?;
        let is_success = response.status().is_success();
        let answer: Json = response.json().await?;
        anyhow::ensure!(is_success, "the demonstration's POST {path} was refused: {answer}");
        let found = answer[member].as_str().with_context(|| format!("no {member} in {answer}"))?;
        Ok(found.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_demonstration_whose_file_is_lost_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data_dir: folder.path().join("data"), ..Config::default() };
        let first = PreparedDemo::prepare(&config).await.unwrap();
        std::fs::remove_file(&first.file).unwrap();
        let again = PreparedDemo::prepare(&config).await.unwrap();
        assert!(again.made && again.kept.workspace_id != first.kept.workspace_id);
        let found = PreparedDemo::prepare(&config).await.unwrap();
        assert!(!found.made && found.kept.workspace_id == again.kept.workspace_id);
    }

    #[tokio::test]
    async fn the_steps_need_no_area_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data_dir: folder.path().join("data"), ..Config::default() };
        let demo = PreparedDemo::prepare(&config).await.unwrap();
        let whole = demo.next_steps("http://127.0.0.1:1", &[]);
        assert!(whole.ends_with("/support/cases\"\n") && !whole.contains("missing"), "{whole}");
        let part = demo.next_steps("http://127.0.0.1:1", &["evidence", "support"]);
        assert!(part.ends_with("/v1/auth/session\"\n"), "{part}");
        assert!(part.contains("missing areas   evidence, support; "), "{part}");
    }

    #[test]
    fn the_file_of_an_earlier_release_is_read() {
        let text = r#"{"email": "a@example.com", "password": "p", "cookie": "c", "csrf_token": "t",
            "workspace_id": "01890000-0000-7000-8000-000000000000", "key_file": "k", "key_id": "1",
            "webhook_secret": null}"#;
        let state: DemoState = serde_json::from_str(text).unwrap();
        assert!(state.producer_id.is_none() && state.key_id.is_some());
    }
}
