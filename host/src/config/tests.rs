//! The configuration as an operator meets it.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::domain::manifest::Capability;

fn load_text(text: &str) -> Result<Config, ConfigError> {
    load_with(text, Flags::default())
}

fn load_with(text: &str, flags: Flags) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("assurance.toml");
    std::fs::write(&file, text).unwrap();
    Config::load(&Source { file: Some(file), without_environment: true, flags })
}

fn refusal(text: &str) -> String {
    load_text(text).expect_err(text).to_string()
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = load_text("").unwrap();
    assert_eq!(config.database_url(), "sqlite://./data/assurance.sqlite");
    assert_eq!(config.sqlite_file(), Some("./data/assurance.sqlite".into()));
    assert_eq!(config.base_url(), "http://127.0.0.1:8080");
    assert_eq!(config.operators_token_file(), PathBuf::from("./data/operators.token"));
    assert_eq!((config.session.idle_minutes, config.session.absolute_hours), (30, 12));
    assert!(config.session.cookie_secure && !config.egress.allow_loopback);
}

#[test]
fn a_flag_wins_over_the_file() {
    let flags = Flags::default().set("api.listen", Some("127.0.0.1:9")).set::<u8>("x", None);
    let config = load_with("api.listen = '127.0.0.1:1'\nlog.format = 'json'", flags).unwrap();
    assert_eq!(config.api.listen.port(), 9);
    assert_eq!(config.log.format, LogFormat::Json);
}

#[test]
fn a_wrong_key_is_named_with_the_way_out() {
    for (text, told) in [
        ("sesion.idle_minutes = 1", "key sesion: there is no such key; known here: data_dir"),
        (
            "session.idle_minuts = 1",
            "key session.idle_minuts: there is no such key; known here: id",
        ),
        ("session.idle_minutes = 'x'", "key session.idle_minutes: "),
        ("session.idle_minutes = 0", "key session.idle_minutes: is 0"),
        ("session.cache_ms = 5000", "key session.cache_ms: is more than 1000"),
        ("log.format = 'xml'", "key log.format: "),
        ("log.filter = 'a=b=c'", "key log.filter: "),
        ("api.listen = 'here'", "key api.listen: "),
        ("api.base_url = 'https://x/y'", "key api.base_url: "),
        ("api.trusted_proxies = ['x']", "key api.trusted_proxies[0]: "),
        (
            "jobs.lanes.ingest.workspace_percent = 0",
            "key jobs.lanes.ingest.workspace_percent: is 0, and must be 1 to 100",
        ),
        ("api.listen = '0.0.0.0:1'\nsession.cookie_secure = false", "key session.cookie_secure: "),
        ("database.url = 'mysql://x'", "key database.url: must begin"),
        ("blobs.url = 'https://x/y'", "key blobs.url: must be like s3://BUCKET"),
        ("blobs.url = 's3://u:p@x/y'", "key blobs.url: must be like s3://BUCKET"),
        ("blobs.url = 's3://x/a/../b'", "key blobs.url: must be like s3://BUCKET"),
        ("blobs.url = 's3://x'\nblobs.dir = 'y'", "key blobs.url: is set, and so is blobs.dir"),
        ("blobs.region = 'x'", "key blobs.region: is for a bucket; set blobs.url"),
        ("blobs.url = 's3://x'\nblobs.endpoint = 'x:9000'", "key blobs.endpoint: must be a URL"),
        (
            "blobs.url = 's3://x'\nblobs.endpoint = 'https://u:p@x'",
            "key blobs.endpoint: has a user in it",
        ),
        (
            "blobs.url = 's3://x'\nblobs.endpoint = 'https://x/bucket'",
            "key blobs.endpoint: must be scheme, host and port alone",
        ),
        (
            "blobs.url = 's3://x'\nblobs.endpoint = 'http://127.0.0.1:9000'",
            "or set blobs.allow_http",
        ),
        ("jobs.lease_ms = 9000", "key jobs.lease_ms: "),
        ("areas.grants.x = ['sockets']", "key areas.grants.x"),
        ("passwords.memory_kib = 1", "key passwords.memory_kib: "),
        ("areas.limits.x.max_documents = 0", "key areas.limits.x.max_documents: "),
        ("areas.limits.x.max_memory_bytes = 5000000000", "key areas.limits.x.max_memory_bytes: "),
        (
            "areas.canary.max_fault_rate_difference = 2",
            "key areas.canary.max_fault_rate_difference: ",
        ),
        ("areas.canary.max_p99_factor = 0.5", "key areas.canary.max_p99_factor: "),
        ("malware.clamd = '/run/clamd.ctl'", "key malware.clamd: "),
        ("mail.smtp_url = 'mail.example.com'", "key mail.smtp_url: "),
        ("mail.smtp_url = 'smtp://u:p@mail.example.com'", "send its password in the clear"),
        ("mail.smtp_url = 'smtps://u:p@mail.example.com'", "key mail.from: is needed"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(told), "{text}: {refusal}");
    }
    assert!(refusal("= nonsense").starts_with("the configuration cannot be read"));
}

#[test]
fn a_password_may_travel_to_a_mail_server_that_hides_it_or_is_here() {
    for url in [
        "smtps://u:p@mail.example.com",
        "smtp://u:p@mail.example.com?tls=required",
        "smtp://u:p@127.0.0.1:2525",
        "smtp://u:p@[::1]",
        "smtp://mail.example.com",
    ] {
        let text = format!("mail.smtp_url = '{url}'\nmail.from = 'a@example.com'");
        assert!(load_text(&text).is_ok(), "{url}");
    }
}

#[test]
fn a_bucket_is_named_with_or_without_a_prefix() {
    for (url, bucket) in [
        ("s3://blobs", ("blobs", "")),
        ("s3://blobs/", ("blobs", "")),
        ("s3://my.blobs/fleet/one/", ("my.blobs", "fleet/one")),
    ] {
        let text = format!("blobs.url = '{url}'\nblobs.endpoint = 'https://s3.example.com'");
        assert_eq!(load_text(&text).unwrap().blobs.bucket(), Some(bucket));
    }
    let text = "blobs.url = 's3://x'\nblobs.endpoint = 'http://h:9000'\nblobs.allow_http = true";
    assert!(load_text(text).is_ok());
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let source = Source { file: Some("/nowhere.toml".into()), ..Source::default() };
    assert!(matches!(Config::load(&source), Err(ConfigError::NoFile(_))));
}

#[test]
fn an_area_has_its_own_grants_or_those_of_all() {
    let config = load_text("areas.grants.notes = ['documents']").unwrap();
    assert_eq!(
        config.areas.granted("notes").into_iter().collect::<Vec<_>>(),
        [Capability::Documents]
    );
    assert!(config.areas.granted("webhooks").contains(&Capability::Egress));
    assert!(config.areas.granted("other").contains(&Capability::Documents));
    assert!(!config.areas.granted("other").contains(&Capability::Egress));
    assert!(config.areas.granted("context").contains(&Capability::AllEvents));
    assert!(!config.areas.granted("other").contains(&Capability::AllEvents));
}

#[test]
fn an_area_s_own_limits_and_settings_are_its_own() {
    let text = "areas.limits.control_room.max_documents = 7\n\
        areas.settings.uploads = { keep_days = 3, note = 'x' }";
    let areas = load_text(text).unwrap().areas;
    let limits = areas.limits["control_room"];
    assert_eq!((limits.max_documents, limits.max_memory_bytes), (Some(7), Some(256 << 20)));
    assert_eq!(areas.settings["uploads"]["keep_days"], "3");
    assert_eq!(areas.settings["uploads"]["note"], "x");
}

#[test]
fn what_is_shown_explains_every_key_hides_secrets_and_can_be_loaded() {
    let text = "keys.master_key = 'c2VjcmV0'\ndatabase.url = 'postgres://u:hidden@h/n'";
    let config = load_text(text).unwrap();
    let shown = config.to_documented_toml();
    assert!(!shown.contains("c2VjcmV0") && !shown.contains("hidden"), "{shown}");
    assert!(shown.contains("postgres://u:***@h/n"), "{shown}");
    assert!(!format!("{config:?}").contains("hidden"));
    let mut before = "";
    for line in shown.lines() {
        let key = line.contains(" = ") || line.ends_with(" =") || line.starts_with('[');
        let explained = before.starts_with('#') || shown_in_a_map(line);
        assert!(!key || explained, "{line} is not explained");
        before = line;
    }
    let without_secrets: String = shown
        .lines()
        .filter(|line| !line.starts_with("master_key ="))
        .collect::<Vec<_>>()
        .join("\n");
    load_text(&without_secrets).unwrap();
}

/// Keys of a map are the operator's own and have nothing to explain them.
fn shown_in_a_map(line: &str) -> bool {
    line.contains("documents")
}

#[test]
fn a_key_file_that_others_can_read_is_refused_with_the_command_that_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/key");
    let made = files::read_or_create_private(&file, || b"one".to_vec().into()).unwrap();
    let again = files::read_or_create_private(&file, || b"two".to_vec().into()).unwrap();
    assert_eq!((&made[..], &again[..]), (&b"one"[..], &b"one"[..]));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let told = files::read_private(&file).unwrap_err().to_string();
    assert!(told.contains("mode 0640") && told.contains("chmod 600"), "{told}");
    assert!(files::create_private(&file, b"x").is_err(), "never overwritten");
}

#[test]
fn an_embedded_database_is_a_file_and_a_servers_is_not() {
    let file = |url: &str| {
        let mut config = Config::default();
        config.database.url = Some(url.to_owned().into());
        config.sqlite_file()
    };
    assert_eq!(file("sqlite:a/b.sqlite"), Some("a/b.sqlite".into()));
    assert_eq!(file("sqlite:///a%20b.sqlite?mode=rwc"), Some("/a b.sqlite".into()));
    assert_eq!(file("postgres://u@h/n"), None);
}
