//! Administration with the command line of the real binary: users, workspaces, memberships and
//! sessions.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::{Answer, Builder, Client, TestHost};

/// A user with an account.
#[derive(Clone, Debug)]
pub struct Person {
    /// User id.
    pub id: String,
    /// E-mail address.
    pub email: String,
    /// Password.
    pub password: String,
}

impl Builder {
    /// Starts a host with a workspace and its signed-in owner.
    pub async fn start_with_owner(self) -> (TestHost, Client) {
        let mut host = self.prepare().await;
        let owner = host.create_person("ada");
        let workspace = host.create_workspace("first", &owner);
        host.start().await;
        let client = host.sign_in(&owner, &workspace);
        (host, client)
    }
}

impl TestHost {
    /// Runs a command that must succeed. Returns its output as JSON.
    pub fn cli(&self, arguments: &[&str]) -> Value {
        self.cli_with_input(arguments, "")
    }

    /// Runs a command that must fail. Returns its standard error.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("the binary starts");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "assurance {arguments:?} is not refused: {errors}");
        errors
    }

    fn cli_with_input(&self, arguments: &[&str], input: &str) -> Value {
        let mut command = self.command(arguments);
        command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("input taken");
        drop(stdin);
        let output = child.wait_with_output().expect("its end");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "assurance {arguments:?}: {errors}");
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("assurance {arguments:?} printed {text:?}: {error}"))
    }

    /// Creates an account `NAME@example.org`.
    pub fn create_person(&mut self, name: &str) -> Person {
        let email = format!("{name}@example.org");
        let password = format!("correct horse battery {name}");
        self.keep_secret(&password);
        let arguments = ["user", "create", "--email", &email, "--name", name, "--password-stdin"];
        let made = self.cli_with_input(&arguments, &password);
        Person { id: text(&made, "id"), email, password }
    }

    /// Creates a workspace with an owner. Returns its id.
    pub fn create_workspace(&self, slug: &str, owner: &Person) -> String {
        let owner = owner.email.as_str();
        let arguments = ["workspace", "create", "--slug", slug, "--name", slug, "--owner", owner];
        text(&self.cli(&arguments), "id")
    }

    /// Adds a member.
    pub fn add_member(&self, workspace: &str, person: &Person, role: &str) {
        let arguments =
            ["member", "add", "--workspace", workspace, "--user", &person.email, "--role", role];
        self.cli(&arguments);
    }

    /// Creates a session as an operator does for machine clients.
    pub fn sign_in(&mut self, person: &Person, workspace: &str) -> Client {
        let made = self.cli(&["session", "create", "--user", &person.email]);
        let session = text(&made, "session");
        self.keep_secret(&session);
        let csrf = text(&made, "csrf_token");
        self.keep_secret(&csrf);
        let (session, csrf) = (Some(session), Some(csrf));
        let workspace = workspace.to_owned();
        Client { session, csrf, workspace, ..Client::nobody(&self.api) }
    }

    /// Returns the client of a response with a new session cookie.
    pub fn signed_in(&self, answer: &Answer) -> Client {
        self.nobody().with_session(answer)
    }

    /// Creates a workspace of another user. Returns its id.
    pub fn elsewhere(&mut self) -> String {
        let stranger = self.create_person("sven");
        self.create_workspace("elsewhere", &stranger)
    }

    /// Creates an account `NAME@example.org` that owns a new workspace, and signs it in.
    pub fn create_owner(&mut self, name: &str, slug: &str) -> Client {
        let person = self.create_person(name);
        let workspace = self.create_workspace(slug, &person);
        self.sign_in(&person, &workspace)
    }

    /// Creates an account, adds it as a member, and signs it in.
    pub fn member(&mut self, name: &str, workspace: &str, role: &str) -> Client {
        let person = self.create_person(name);
        self.add_member(workspace, &person, role);
        self.sign_in(&person, workspace)
    }

    /// Returns the operators' bearer token.
    #[must_use]
    pub fn operators_token(&self) -> String {
        let file = self.folder().join("data/operators.token");
        std::fs::read_to_string(file).expect("a token").trim().to_owned()
    }
}

fn text(value: &Value, member: &str) -> String {
    let found = value[member].as_str();
    found.unwrap_or_else(|| panic!("no {member} in {value}")).to_owned()
}
