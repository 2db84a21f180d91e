//! Command line: one file for each noun.
//!
//! Results are printed on standard output, for people by default and as one
//! JSON object with `--json`. Everything else is printed on standard error. A
//! secret is printed only once, when it is created.

mod access_token;
mod area;
mod backup;
mod compile;
mod completions;
mod config;
mod demo;
mod evidence;
mod input;
mod key_generate;
mod member;
mod operators;
mod output;
mod serve;
mod session;
mod table;
mod token;
mod user;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use assurance_core::config::{Config, ConfigSources, FlagOverrides};
use assurance_store::Store;

/// The Workspace Assurance Service.
#[derive(Debug, Parser)]
#[command(name = "assurance", version = env!("ASSURANCE_VERSION"), max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    common: CommonOptions,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
struct CommonOptions {
    /// Configuration file (TOML); default: assurance.toml if it exists.
    #[arg(long, global = true, env = "ASSURANCE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data folder of the service (data_dir).
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Database: sqlite://PATH or postgres://USER@HOST/NAME (database.url).
    #[arg(long, global = true, value_name = "URL")]
    database_url: Option<String>,
    /// Print the result as one JSON object.
    #[arg(long, global = true)]
    json: bool,
}

impl CommonOptions {
    fn load(&self) -> anyhow::Result<Config> {
        self.load_with(FlagOverrides::default())
    }

    /// Loads the configuration; the command's flags override it.
    fn load_with(&self, flags: FlagOverrides) -> anyhow::Result<Config> {
        let config = Config::load(&self.source(flags))?;
        check_database_url(&config)?;
        Ok(config)
    }

    fn source(&self, flags: FlagOverrides) -> ConfigSources {
        let flags = flags
            .set("data_dir", self.data_dir.as_ref())
            .set("database.url", self.database_url.as_ref());
        ConfigSources { file: self.config.clone(), flags, ..ConfigSources::default() }
    }
}

/// Checks the form of the database URL. Loading the configuration does not,
/// because only the store has the drivers.
fn check_database_url(config: &Config) -> anyhow::Result<()> {
    Store::check_url(&config.database_url()).map_err(|reason| {
        anyhow::anyhow!(
            "configuration key database.url: {reason}; write sqlite://PATH or \
             postgres://USER:PASSWORD@HOST/NAME, with special characters in user and password \
             percent-encoded, such as # as %23"
        )
    })
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API until SIGTERM.
    Serve(serve::Serve),
    /// Manage users who can sign in.
    #[command(subcommand)]
    User(user::Command),
    /// Manage workspaces and their features.
    #[command(subcommand)]
    Workspace(workspace::Command),
    /// Manage members of a workspace.
    #[command(subcommand)]
    Member(member::Command),
    /// Create and revoke sessions without a password, for operators and
    /// machines.
    #[command(subcommand)]
    Session(session::Command),
    /// Manage access tokens of a workspace for machines.
    #[command(subcommand)]
    AccessToken(access_token::Command),
    /// Create signing keys.
    #[command(subcommand)]
    Key(key_generate::Command),
    /// Create and sign evidence envelopes.
    #[command(subcommand)]
    Evidence(evidence::Command),
    /// Manage components of API areas.
    #[command(subcommand)]
    Area(area::Command),
    /// Manage operators' tokens.
    #[command(subcommand)]
    Token(token::Command),
    /// Check and print the configuration.
    #[command(subcommand)]
    Config(config::Command),
    /// Manage the demonstration of `serve --demo`.
    #[command(subcommand)]
    Demo(demo::Command),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Completions(completions::Completions),
    /// Compiles a component; `serve` runs it as a child process.
    #[command(hide = true, name = assurance_runtime::COMPILE_COMMAND)]
    Compile(compile::Compile),
}

/// Parses the arguments, runs the command, and prints its error.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Compile(command) = cli.command {
        return command.run();
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let ran = runtime.block_on(Box::pin(run(cli)));
    // Does not wait for blocking tasks, because their results are no longer
    // needed.
    runtime.shutdown_background();
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    output::note(output::with_causes(error));
    match error.downcast_ref::<IncomparableInput>() {
        Some(IncomparableInput) => ExitCode::from(2),
        None => ExitCode::FAILURE,
    }
}

/// Error of a command that could not compare its inputs. The process then exits
/// with code 2; a difference exits with code 1.
#[derive(Debug, thiserror::Error)]
#[error("nothing was compared")]
struct IncomparableInput;

async fn run(cli: Cli) -> anyhow::Result<()> {
    let common = &cli.common;
    match cli.command {
        Command::Serve(command) => command.run(common).await,
        Command::User(command) => command.run(common).await,
        Command::Workspace(command) => command.run(common).await,
        Command::Member(command) => command.run(common).await,
        Command::Session(command) => command.run(common).await,
        Command::AccessToken(command) => command.run(common).await,
        Command::Key(command) => command.run(common),
        Command::Evidence(command) => command.run(),
        Command::Area(command) => Box::pin(command.run(common)).await,
        Command::Token(command) => command.run(common).await,
        Command::Config(command) => command.run(common),
        Command::Backup(command) => Box::pin(command.run(common)).await,
        Command::Restore(command) => Box::pin(command.run(common)).await,
        Command::Demo(command) => Box::pin(command.run(common)).await,
        Command::Completions(command) => {
            command.run();
            Ok(())
        }
        Command::Compile(_) => unreachable!("it runs before there is an executor"),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    #[test]
    fn the_arguments_are_well_defined() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn a_database_url_that_its_driver_refuses_is_refused_without_its_password() {
        for (url, reason) in [
            ("postgres://u:hush#w/d@h/n", "invalid port number"),
            ("postgres://u:hush@h/n?sslmode=maybe", "unknown value \"maybe\" for `ssl_mode`"),
            ("postgres://u:hush%ff@h/n", "invalid utf-8"),
            ("sqlite://x?mode=maybe", "unknown value \"maybe\" for `mode`"),
        ] {
            let database_url = Some(url.to_owned());
            let common =
                super::CommonOptions { config: None, data_dir: None, database_url, json: false };
            let refusal = common.load().expect_err(url).to_string();
            let expected = format!("configuration key database.url: {reason}");
            assert!(refusal.starts_with(&expected), "{url}: {refusal}");
            assert!(refusal.contains("percent-encoded"), "{url}: {refusal}");
            assert!(!refusal.contains("hush"), "{url}: {refusal}");
        }
    }

    #[test]
    fn documented_commands_are_accepted() {
        let guide = include_str!("../../../OPERATING.md").lines();
        let examples = guide.filter(|line| line.starts_with("assurance "));
        let rules = include_str!("../../../deploy/alerts.yml").split('`');
        let steps = rules.filter(|text| text.starts_with("assurance "));
        let digest = "0".repeat(64);
        let mut count = 0;
        for command in examples.chain(steps) {
            count += 1;
            let command = command.replace('…', &digest);
            let parsed = super::Cli::try_parse_from(words(&command));
            assert!(parsed.is_ok(), "{command}: {}", parsed.unwrap_err());
        }
        assert!(count > 20, "{count} commands");
    }

    /// Returns the words of a command line, up to a redirection or a comment.
    fn words(command: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (index, part) in command.split('"').enumerate() {
            match index % 2 {
                1 => words.push(part.to_owned()),
                _ => words.extend(part.split_whitespace().map(str::to_owned)),
            }
        }
        let end = words.iter().position(|word| ["#", ">"].contains(&word.as_str()));
        words.truncate(end.unwrap_or(words.len()));
        words
    }
}
