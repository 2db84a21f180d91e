//! Tests of the configuration as an operator uses it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;

use super::layers::{self, ConfigLayer};
use super::*;
use crate::domain::manifest::Capability;

fn load_text(text: &str) -> Result<Config, ConfigError> {
    load_with(text, FlagOverrides::default())
}

fn load_with(text: &str, flags: FlagOverrides) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("assurance.toml");
    std::fs::write(&file, text).unwrap();
    let source = ConfigSources {
        file: Some(file),
        without_environment: true,
        flags,
        ..ConfigSources::default()
    };
    Config::load(&source)
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
fn the_base_url_is_as_browsers_send_it_in_origin() {
    for (given, expected) in [
        ("https://x", "https://x"),
        ("https://x/", "https://x"),
        ("https://x:443", "https://x"),
        ("http://x:80/", "http://x"),
        ("https://X:8443", "https://x:8443"),
    ] {
        let config = load_text(&format!("api.base_url = '{given}'")).unwrap();
        assert_eq!(config.base_url(), expected, "{given}");
    }
}

#[test]
fn a_flag_wins_over_the_file() {
    let flags =
        FlagOverrides::default().set("api.listen", Some("127.0.0.1:9")).set::<u8>("x", None);
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
        ("access_tokens.max_days = 0", "key access_tokens.max_days: is 0"),
        ("session.cache_ms = 5000", "key session.cache_ms: is more than 1000"),
        ("log.format = 'xml'", "key log.format: "),
        ("log.filter = 'a=b=c'", "key log.filter: "),
        ("api.listen = 'here'", "syntax; write an address and a port, like 127.0.0.1:8080 (set"),
        ("budgets.workspaces.first.max_concurrent = 1", "key budgets.workspaces.first: UUID"),
        ("budgets.workspaces.first.max_concurrent = 1", "; write the id of a workspace, not its"),
        (
            "api.listen = '0.0.0.0:9'\noperators.listen = '127.0.0.1:9'",
            "key operators.listen: is 127.0.0.1:9, and api.listen (0.0.0.0:9) has the same port",
        ),
        (
            "api.listen = '127.0.0.1:9'\noperators = { listen = '[::]:9', allow_http = true }",
            "key operators.listen: is [::]:9, and api.listen",
        ),
        ("api.base_url = 'https://x/y'", "key api.base_url: "),
        ("api.trusted_proxies = ['x']", "key api.trusted_proxies[0]: "),
        ("api.cors_origins = ['*']", "key api.cors_origins[0]: is \"*\", and requests with"),
        ("api.cors_origins = ['https://x', 'https://x/']", "key api.cors_origins[1]: "),
        ("api.cors_origins = ['https://x:443']", "key api.cors_origins[0]: \"https://x:443\" must"),
        ("api.cors_origins = ['https://X']", "key api.cors_origins[0]: "),
        ("api.cors_origins = ['app.example']", "key api.cors_origins[0]: "),
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
        (
            "areas.grants.control-room = ['log']",
            "key areas.grants.control-room: is not the name of an area, which has only lower-case",
        ),
        ("areas.limits.control-room = {}", "key areas.limits.control-room: is not the name"),
        ("areas.settings.'*' = {}", "key areas.settings.*: is not the name"),
        ("budgets.areas.Notes = {}", "key budgets.areas.Notes: is not the name"),
        ("passwords.memory_kib = 1", "key passwords.memory_kib: "),
        ("passwords.parallelism = 536870912", "key passwords.parallelism: must be 1 to 64"),
        ("areas.limits.x.max_documents = 0", "key areas.limits.x.max_documents: "),
        ("areas.limits.x.max_memory_bytes = 5000000000", "key areas.limits.x.max_memory_bytes: "),
        (
            "areas.canary.max_fault_rate_difference = 2",
            "key areas.canary.max_fault_rate_difference: ",
        ),
        ("areas.canary.max_p99_factor = 0.5", "key areas.canary.max_p99_factor: "),
        ("malware.clamd = '/run/clamd.ctl'", "key malware.clamd: "),
        ("mail.smtp_url = 'mail.example.com'", "key mail.smtp_url: "),
        ("mail.smtp_url = 'smtp://u:p@mail.example.com'", "send its password unencrypted"),
        ("rates.redis_url = 'cache.example.com'", "key rates.redis_url: "),
        ("rates.redis_url = 'redis://u:p@cache.example.com'", "send its password unencrypted"),
        ("mail.smtp_url = 'smtps://u:p@mail.example.com'", "key mail.from: is needed"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.contains(told), "{text}: {refusal}");
    }
    assert!(refusal("= nonsense").starts_with("the configuration cannot be read"));
}

#[test]
fn listeners_share_a_port_on_addresses_that_differ() {
    for (api, operators) in
        [("127.0.0.2:9", "127.0.0.1:9"), ("0.0.0.0:9", "[::1]:9"), ("0.0.0.0:0", "127.0.0.1:0")]
    {
        let text = format!("api.listen = '{api}'\noperators.listen = '{operators}'");
        assert!(load_text(&text).is_ok(), "{text}");
    }
}

#[test]
fn browsers_call_from_web_pages_and_applications() {
    let origins = "['https://app.example', 'http://127.0.0.1:3000', 'capacitor://localhost']";
    assert_eq!(
        load_text(&format!("api.cors_origins = {origins}")).unwrap().api.cors_origins.len(),
        3
    );
}

#[test]
fn every_wrong_key_is_named_at_once() {
    let refusal = refusal(
        "sesion.x = 1\nsession.idle_minuts = 1\nlog.format = 'xml'\nareas.poll_ms = 0\n\
         rates.share_ms = 0\napi.trusted_proxies = [1]\nmail.smtp_url = 'x'",
    );
    let keys: Vec<&str> = refusal
        .lines()
        .map(|line| line.split("key ").nth(1).expect(line).split(':').next().expect(line))
        .collect();
    let expected = [
        "sesion",
        "session.idle_minuts",
        "log.format",
        "api.trusted_proxies[0]",
        "areas.poll_ms",
        "rates.share_ms",
        "mail.smtp_url",
        "mail.from",
    ];
    let sorted = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(sorted(&keys), sorted(&expected), "{refusal}");
    assert_eq!(refusal.matches("assurance.toml)").count(), 7, "{refusal}");
    assert!(refusal.contains("the defaults)"), "nobody set mail.from: {refusal}");
}

#[test]
fn a_wrong_value_of_a_lane_is_the_only_error() {
    let refusal = refusal("jobs.lanes.ingest = { capacity = -3, backoff_max_ms = 'x' }");
    let mut keys: Vec<&str> =
        refusal.lines().map(|line| line.split(": ").next().expect(line)).collect();
    keys.sort_unstable();
    let lane = "configuration key jobs.lanes.ingest.";
    assert_eq!(keys, [format!("{lane}backoff_max_ms"), format!("{lane}capacity")], "{refusal}");
}

#[test]
fn operators_are_served_beyond_this_machine_only_if_that_is_allowed() {
    let refusal = refusal("operators.listen = '10.0.0.1:8081'");
    assert!(refusal.contains("key operators.listen: is 10.0.0.1:8081, and"), "{refusal}");
    assert!(load_text("operators = { listen = '10.0.0.1:8081', allow_http = true }").is_ok());
    assert!(load_text("operators.listen = '[::1]:8081'").is_ok());
}

#[test]
fn a_default_is_shown_as_a_comment_and_a_copy_keeps_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(AREAS_FILE), "grants.hooks = ['egress']").unwrap();
    let file = folder.path().join("assurance.toml");
    let text = format!("session.idle_minutes = 7\nareas.dir = {:?}", folder.path());
    std::fs::write(&file, text).unwrap();
    let source = ConfigSources {
        file: Some(file.clone()),
        without_environment: true,
        ..ConfigSources::default()
    };
    let shown = Config::documented_toml(&source).unwrap();
    let set: Vec<&str> =
        shown.lines().filter(|line| !line.starts_with(['#', '[']) && !line.is_empty()).collect();
    assert!(matches!(set[..], [dir, "idle_minutes = 7"] if dir.starts_with("dir = ")), "{set:?}");
    for default in ["#absolute_hours = 12", "#hooks = [\"egress\"]", "#url ="] {
        assert!(shown.contains(default), "no {default} in {shown}");
    }
    std::fs::write(&file, &shown).unwrap();
    assert_eq!(Config::documented_toml(&source).unwrap(), shown);
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
    let source = ConfigSources { file: Some("/nowhere.toml".into()), ..ConfigSources::default() };
    assert!(matches!(Config::load(&source), Err(ConfigError::NoFile(_))));
}

#[test]
fn an_area_has_its_own_grants_or_those_of_all() {
    let config = load_text("areas.grants.notes = ['documents']").unwrap();
    let granted = config.areas.granted("notes");
    assert_eq!(granted.into_iter().collect::<Vec<_>>(), [Capability::Documents]);
    let other = config.areas.granted("other");
    assert!(other.contains(&Capability::Documents));
    assert!(!other.contains(&Capability::Egress) && !other.contains(&Capability::AllEvents));
}

/// Loads the configuration `text`, with `areas` as the content of `areas.toml`
/// next to the components.
fn load_beside(areas: &str, text: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(AREAS_FILE), areas).unwrap();
    load_text(&format!("areas.dir = {:?}\n{text}", folder.path()))
}

#[test]
fn the_file_next_to_the_components_grants_and_the_configuration_wins() {
    let areas = "grants.hooks = ['egress']\nlimits.big = { max_documents = 9, max_cpu_ms = 5 }";
    let config = load_beside(areas, "areas.limits.big.max_documents = 7").unwrap();
    assert!(config.areas.granted("hooks").contains(&Capability::Egress));
    assert!(config.areas.granted("other").contains(&Capability::Documents));
    let limits = config.areas.limits["big"];
    assert_eq!((limits.max_documents, limits.max_cpu_ms), (Some(7), Some(5)));
    let config = load_beside(areas, "areas.grants.hooks = ['log']").unwrap();
    assert!(!config.areas.granted("hooks").contains(&Capability::Egress));
}

#[test]
fn another_folder_s_file_grants_only_if_the_components_have_none() {
    let [components, other] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let flags = FlagOverrides::default().set("areas.dir", Some(components.path()));
    let source = ConfigSources {
        without_environment: true,
        flags,
        areas_folder: Some(other.path().to_path_buf()),
        ..ConfigSources::default()
    };
    let granted = || {
        let config = Config::load(&source).unwrap();
        assert_eq!(config.areas_dir(), components.path());
        config.areas.granted("hooks")
    };
    let ordinary = granted();
    assert!(!ordinary.contains(&Capability::Egress));
    std::fs::write(other.path().join(AREAS_FILE), "grants.hooks = ['egress']").unwrap();
    assert!(granted().contains(&Capability::Egress));
    std::fs::write(components.path().join(AREAS_FILE), "").unwrap();
    assert_eq!(granted(), ordinary);
}

#[test]
fn the_file_next_to_the_components_sets_nothing_else() {
    for (areas, told) in [
        ("publishers.x.key = 'k'", "key publishers: there is no such key; known here: grants"),
        ("grants.x = ['sockets']", "key areas.grants.x"),
        ("grants = 1", "key areas.grants: "),
        ("= nonsense", "areas.toml: "),
    ] {
        let refusal = load_beside(areas, "").unwrap_err().to_string();
        assert!(refusal.contains(told) && refusal.contains("areas.toml"), "{areas}: {refusal}");
    }
}

#[test]
fn the_first_party_file_is_one_the_host_reads() {
    let config = load_beside(include_str!("../../../../guests/areas.toml"), "").unwrap();
    assert!(config.areas.granted("webhooks").contains(&Capability::Egress));
    assert!(config.areas.granted("context").contains(&Capability::AllEvents));
    assert_eq!(config.areas.limits["control_room"].max_memory_bytes, Some(256 << 20));
}

#[test]
fn an_area_s_settings_are_texts() {
    let areas = load_text("areas.settings.uploads = { keep_days = 3, note = 'x' }").unwrap().areas;
    assert_eq!(areas.settings["uploads"]["keep_days"], "3");
    assert_eq!(areas.settings["uploads"]["note"], "x");
}

fn environment(variables: &[(&str, &str)]) -> Result<ConfigLayer, ConfigError> {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    ConfigLayer::environment(variables, load::is_configuration)
}

#[test]
fn variables_of_other_programs_are_ignored_and_misspelled_keys_are_not_silent() {
    let others = [("ASSURANCE_PORT", "tcp://10.0.0.1:80"), ("ASSURANCE_SERVICE_HOST", "10.0.0.1")];
    let (_, wrong) = layers::merged(&[environment(&others).unwrap()]);
    assert!(wrong.is_empty(), "{wrong:?}");
    let names = ["ASSURANCE_PORT", "ASSURANCE_DATADIR", "ASSURANCE_DATA_DIR", "ASSURANCE_CONFIG"];
    let ignored = load::ignored(names.into_iter().map(Into::into));
    assert_eq!(ignored, ["ASSURANCE_PORT", "ASSURANCE_DATADIR"]);
    let misspelled = [("ASSURANCE_SESION__IDLE_MINUTES", "5")];
    let (_, wrong) = layers::merged(&[environment(&misspelled).unwrap()]);
    assert_eq!(wrong[0].key, "sesion");
}

#[test]
fn a_variable_that_is_not_text_is_named_if_it_is_a_key() {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStrExt as _;
    let load = |name: &str| {
        let value = OsStr::from_bytes(b"\xff").to_owned();
        let variables = [(OsString::from(name), value.clone()), (value.clone(), value)];
        ConfigLayer::environment(variables.into_iter(), load::is_configuration)
    };
    assert!(load("LS_COLORS").is_ok());
    let refusal = load("ASSURANCE_LOG__FILTER").unwrap_err().to_string();
    assert!(refusal.contains("key log.filter: is not UTF-8 text (set in the environment)"));
}

#[test]
fn every_key_outside_of_sections_can_be_a_variable() {
    let config = serde_json::to_value(Config::default()).unwrap();
    let keys = config.as_object().unwrap().iter().filter(|(_, value)| !value.is_object());
    assert!(keys.map(|(key, _)| key).eq(load::OUTSIDE_SECTIONS.iter()));
}

#[test]
fn variables_have_types_and_the_last_source_wins() {
    let variables = [
        ("ASSURANCE_SESSION__IDLE_MINUTES", "5"),
        ("ASSURANCE_API__TRUSTED_PROXIES", "['10.0.0.0/8']"),
        ("ASSURANCE_LOG__FILTER", "debug"),
        ("ASSURANCE_BIN", "x"),
        ("OTHER", "x"),
    ];
    let (config, wrong) = layers::merged(&[environment(&variables).unwrap()]);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(config.session.idle_minutes, 5);
    assert_eq!(config.api.trusted_proxies, ["10.0.0.0/8"]);
    assert_eq!(config.log.filter, "debug");
}

#[test]
fn a_secret_of_the_wrong_type_is_not_repeated() {
    let refusal = refusal("keys.master_key = 4711");
    assert!(refusal.contains("key keys.master_key: ") && !refusal.contains("4711"), "{refusal}");
}

#[test]
fn a_line_that_is_no_toml_is_named_by_its_number_and_not_repeated() {
    let refusal = refusal("[mail]\nsmtp_url = smtps://bot:hunter2@mail");
    assert!(refusal.contains("assurance.toml: line 2, column "), "{refusal}");
    assert!(!refusal.contains("hunter2"), "{refusal}");
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
        let line = line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line);
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

/// Returns whether the line is below a map, whose keys the operator chose and
/// which have no description.
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
