//! Checks of configuration values that types cannot express.

mod blobs;

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, show};
use crate::domain::job::Lane;

impl Config {
    /// Returns the configuration keys whose values would fail later or are
    /// unsafe, each with a description of its problem.
    pub(in crate::config) fn check(&self) -> Problems {
        let mut found = Problems::default();
        self.check_addresses(&mut found);
        self.check_cors_origins(&mut found);
        self.check_database(&mut found);
        self.check_blobs(&mut found);
        self.check_minimums(&mut found);
        self.check_lanes(&mut found);
        self.check_passwords(&mut found);
        self.check_times(&mut found);
        self.check_publishers(&mut found);
        self.check_area_names(&mut found);
        self.check_area_limits(&mut found);
        self.check_canary(&mut found);
        self.check_budgets(&mut found);
        self.check_rates(&mut found);
        self.check_mail(&mut found);
        check_filter(&self.log.filter, &mut found);
        found
    }

    fn check_addresses(&self, found: &mut Problems) {
        if let Some(base) = &self.api.base_url {
            check_base_url(base, found);
        }
        if !self.session.cookie_secure && !self.api.listen.ip().is_loopback() {
            let problem = format!(
                "the session cookie may only travel without https on a loopback listener, and \
                 api.listen is {}; set it to true, or listen on 127.0.0.1",
                self.api.listen
            );
            found.add("session.cookie_secure", problem);
        }
        let operators = &self.operators;
        if !operators.listen.ip().is_loopback() && !operators.allow_http {
            let problem = format!(
                "is {}, and operators' tokens would travel without TLS beyond this machine; listen \
                 on 127.0.0.1 behind a proxy, or set operators.allow_http if the network is \
                 private",
                operators.listen
            );
            found.add("operators.listen", problem);
        }
        if collide(self.api.listen, operators.listen) {
            let problem = format!(
                "is {}, and api.listen ({}) has the same port there; give operators a port of \
                 their own",
                operators.listen, self.api.listen
            );
            found.add("operators.listen", problem);
        }
        for (index, proxy) in self.api.trusted_proxies.iter().enumerate() {
            if proxy.parse::<IpAddr>().is_err() && proxy.parse::<ipnet::IpNet>().is_err() {
                let problem =
                    format!("{proxy:?} is neither an address nor a network like 10.0.0.0/8");
                found.add(format!("api.trusted_proxies[{index}]"), problem);
            }
        }
    }

    fn check_cors_origins(&self, found: &mut Problems) {
        for (index, origin) in self.api.cors_origins.iter().enumerate() {
            let problem = match origin.as_str() {
                origin if is_origin(origin) => continue,
                "*" => "is \"*\", and requests with credentials need named origins".to_owned(),
                other => format!(
                    "{other:?} must be an origin as browsers send it, scheme and host in lower \
                     case without a path, like https://app.example.com"
                ),
            };
            found.add(format!("api.cors_origins[{index}]"), problem);
        }
    }

    fn check_database(&self, found: &mut Problems) {
        let known = ["sqlite:", "postgres://", "postgresql://"];
        let url = self.database.url.as_ref();
        if url.is_some_and(|url| !known.iter().any(|scheme| url.reveal().starts_with(scheme))) {
            found.add("database.url", "must begin with sqlite:// or postgres://");
        }
    }

    fn check_minimums(&self, found: &mut Problems) {
        let schema = schemars::schema_for!(Config).to_value();
        let values = serde_json::to_value(self).unwrap_or_default();
        check_minimums("", &values, &schema, &schema, found);
    }

    fn check_lanes(&self, found: &mut Problems) {
        for lane in Lane::ALL {
            let share = self.jobs.lanes.of(lane);
            let parts = [
                ("workspace_percent", share.workspace_percent),
                ("resource_percent", share.resource_percent),
            ];
            for (key, percent) in parts {
                if !(1..=100).contains(&percent) {
                    let problem = format!("is {percent}, and must be 1 to 100");
                    found.add(format!("jobs.lanes.{lane}.{key}"), problem);
                }
            }
        }
    }

    fn check_passwords(&self, found: &mut Problems) {
        let set = &self.passwords;
        let least_kib = set.parallelism.max(1).saturating_mul(8);
        if set.memory_kib < least_kib || set.memory_kib > 4_194_304 {
            found.add("passwords.memory_kib", "must be 8 per lane to 4194304");
        }
        if !(1..=64).contains(&set.iterations) {
            found.add("passwords.iterations", "must be 1 to 64");
        }
        if !(1..=64).contains(&set.parallelism) {
            found.add("passwords.parallelism", "must be 1 to 64");
        }
        if !(8..=128).contains(&set.min_length) {
            found.add("passwords.min_length", "must be 8 to 128");
        }
    }

    fn check_publishers(&self, found: &mut Problems) {
        for (name, publisher) in &self.areas.publishers {
            let key = STANDARD.decode(&publisher.public_key);
            if key.is_ok_and(|key| key.len() == 32) {
                continue;
            }
            let problem = "must be the 32 bytes of an Ed25519 public key in base64, as `assurance \
                           key generate` prints them";
            found.add(format!("areas.publishers.{name}.public_key"), problem);
        }
    }

    fn check_times(&self, found: &mut Problems) {
        if self.session.cache_ms > 1_000 {
            let problem = "is more than 1000, and a revocation must show on every node at once";
            found.add("session.cache_ms", problem);
        }
        if self.session.idle_minutes > self.session.absolute_hours.saturating_mul(60) {
            let problem = "is longer than session.absolute_hours";
            found.add("session.idle_minutes", problem);
        }
        if self.jobs.heartbeat_ms.saturating_mul(2) > self.jobs.lease_ms {
            let problem = "must be at least twice jobs.heartbeat_ms, or healthy jobs are lost";
            found.add("jobs.lease_ms", problem);
        }
        if self.limits.max_deadline_ms < self.limits.deadline_ms {
            found.add("limits.max_deadline_ms", "is shorter than limits.deadline_ms");
        }
        if self.areas.max_stale_ms < self.areas.poll_ms.saturating_mul(2) {
            let problem = "must be at least twice areas.poll_ms, or healthy nodes answer 503";
            found.add("areas.max_stale_ms", problem);
        }
    }

    /// Refuses names that no area can have, such as that of a component's file. Other names may
    /// belong to areas that are deployed later.
    fn check_area_names(&self, found: &mut Problems) {
        let areas = &self.areas;
        let grants = areas.grants.keys().filter(|name| *name != "*");
        let grants = grants.map(|name| ("areas.grants", name));
        let limits = areas.limits.keys().map(|name| ("areas.limits", name));
        let settings = areas.settings.keys().map(|name| ("areas.settings", name));
        let budgets = self.budgets.areas.keys().map(|name| ("budgets.areas", name));
        for (section, name) in grants.chain(limits).chain(settings).chain(budgets) {
            if !name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_')) {
                let problem = "is not the name of an area, which has only lower-case letters, \
                               digits and _; write control_room, not control-room";
                found.add(format!("{section}.{name}"), problem);
            }
        }
    }

    fn check_area_limits(&self, found: &mut Problems) {
        for (area, limits) in &self.areas.limits {
            let most = self.runtime.max_total_memory_bytes.min(MAX_MEMORY_BYTES);
            if limits.max_memory_bytes.is_some_and(|bytes| bytes > most) {
                let problem =
                    format!("is more than {most}, which is what all instances may have together");
                found.add(format!("areas.limits.{area}.max_memory_bytes"), problem);
            }
        }
    }

    fn check_canary(&self, found: &mut Problems) {
        let canary = &self.areas.canary;
        if !(0.0..=1.0).contains(&canary.max_fault_rate_difference) {
            let problem = "must be a share from 0 to 1; 0.02 is two calls in a hundred";
            found.add("areas.canary.max_fault_rate_difference", problem);
        }
        if canary.max_p99_factor.is_nan() || canary.max_p99_factor < 1.0 {
            found.add("areas.canary.max_p99_factor", "must be at least 1");
        }
        if !(0.0..=100.0).contains(&self.areas.record.percent) {
            let problem = "must be from 0 to 100; 1 is one request in a hundred";
            found.add("areas.record.percent", problem);
        }
    }

    fn check_budgets(&self, found: &mut Problems) {
        let budgets = &self.budgets;
        if !(1..=100).contains(&budgets.warn_percent) {
            found.add("budgets.warn_percent", "must be from 1 to 100");
        }
        let areas = budgets.areas.iter().map(|(name, budget)| (format!("areas.{name}"), budget));
        let workspaces = budgets.workspaces.iter();
        let workspaces = workspaces.map(|(id, budget)| (format!("workspaces.{id}"), budget));
        let each = [("each_area", &budgets.each_area), ("each_workspace", &budgets.each_workspace)];
        let each = each.into_iter().map(|(name, budget)| (name.to_owned(), budget));
        for (name, budget) in each.chain(areas).chain(workspaces) {
            let numbers = [
                ("cpu_ms_per_minute", budget.cpu_ms_per_minute),
                ("host_calls_per_minute", budget.host_calls_per_minute),
                ("documents_per_minute", budget.documents_per_minute),
                ("max_memory_bytes", budget.max_memory_bytes),
                ("max_concurrent", budget.max_concurrent.map(u64::from)),
            ];
            for (key, _) in numbers.into_iter().filter(|(_, number)| *number == Some(0)) {
                let problem = "is 0, and must be at least 1; leave it out for no bound";
                found.add(format!("budgets.{name}.{key}"), problem);
            }
        }
    }

    fn check_rates(&self, found: &mut Problems) {
        let url = self.rates.redis_url.as_ref();
        if let Some(Err(problem)) = url.map(|url| check_redis_url(url.reveal())) {
            found.add("rates.redis_url", problem);
        }
    }

    fn check_mail(&self, found: &mut Problems) {
        let Some(url) = &self.mail.smtp_url else { return };
        if let Err(problem) = check_smtp_url(url.reveal()) {
            found.add("mail.smtp_url", problem);
        }
        if self.mail.from.is_none() {
            let problem = "is needed with mail.smtp_url: Assurance <assurance@example.com>";
            found.add("mail.from", problem);
        }
    }
}

/// Invalid configuration keys, each with a description of its problem, in the
/// order in which they were found.
#[derive(Debug, Default)]
pub(in crate::config) struct Problems(pub(in crate::config) Vec<(String, String)>);

impl Problems {
    fn add(&mut self, key: impl Into<String>, problem: impl Into<String>) {
        self.0.push((key.into(), problem.into()));
    }
}

/// Returns whether two listeners would have an address and port in common.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    // `[::]` accepts connections over IPv4, too.
    let includes =
        |all: IpAddr, ip: IpAddr| all.is_unspecified() && (all.is_ipv6() || ip.is_ipv4());
    let (ip, other_ip) = (one.ip(), other.ip());
    let is_same_port = one.port() == other.port() && one.port() != 0;
    is_same_port && (one == other || includes(ip, other_ip) || includes(other_ip, ip))
}

/// Reports each number in a part of the configuration that is less than the
/// minimum in its JSON Schema. The macro `section!` sets the minimums.
fn check_minimums(part: &str, values: &Json, schema: &Json, root: &Json, found: &mut Problems) {
    let schema = show::resolve(schema, root);
    for (name, value) in values.as_object().into_iter().flatten() {
        let key = if part.is_empty() { name.clone() } else { format!("{part}.{name}") };
        let schema = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
        match (value.as_u64(), schema["minimum"].as_u64()) {
            (Some(number), Some(least)) if number < least => {
                found.add(key, format!("is {number}, and must be at least {least}"));
            }
            _ => check_minimums(&key, value, schema, root, found),
        }
    }
}

/// Checks the URL of the mail server. The error omits the parser's reason,
/// which might quote a password.
fn check_smtp_url(url: &str) -> Result<(), &'static str> {
    let url = url::Url::parse(url).map_err(|_| "is not a URL like smtps://USER:PASSWORD@HOST")?;
    if !matches!(url.scheme(), "smtp" | "smtps") || !url.has_host() {
        return Err("must begin with smtps:// or smtp:// and a host");
    }
    if sends_password_openly(&url) {
        return Err("would send its password unencrypted; write smtps:// or ?tls=required");
    }
    Ok(())
}

/// Checks the URL of the Redis server that shares rate limits between nodes.
/// The error omits the parser's reason, which might quote a password.
fn check_redis_url(url: &str) -> Result<(), &'static str> {
    let url =
        url::Url::parse(url).map_err(|_| "is not a URL like rediss://USER:PASSWORD@HOST:6379/0")?;
    if !matches!(url.scheme(), "redis" | "rediss") || !url.has_host() {
        return Err("must begin with redis:// or rediss:// and a host");
    }
    if sends_password_openly(&url) {
        return Err("would send its password unencrypted; write rediss://");
    }
    Ok(())
}

/// Returns whether the URL contains a password that would be sent without TLS
/// to another machine.
fn sends_password_openly(url: &url::Url) -> bool {
    let required = url.query_pairs().any(|(key, value)| key == "tls" && value == "required");
    // These are no special schemes of the URL standard, so the parser returns
    // an IPv4 address as a plain host name.
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let here = host == "localhost" || host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    url.password().is_some() && matches!(url.scheme(), "smtp" | "redis") && !required && !here
}

/// Largest memory that a guest can address (32-bit WebAssembly), in bytes.
const MAX_MEMORY_BYTES: u64 = 4 << 30;

/// Returns whether a text is the origin of a URL, as browsers send it in the
/// header `Origin`.
fn is_origin(text: &str) -> bool {
    url::Url::parse(text).is_ok_and(|url| {
        url.has_host() && url.username().is_empty() && url[..url::Position::BeforePath] == *text
    })
}

fn check_base_url(base: &str, found: &mut Problems) {
    let url = match url::Url::parse(base) {
        Ok(url) => url,
        Err(error) => {
            return found.add("api.base_url", format!("{base:?} is not a URL: {error}"));
        }
    };
    let plain = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !plain || url.path() != "/" || url.query().is_some() || !url.username().is_empty() {
        let problem =
            format!("{base:?} must be scheme and host alone, like https://api.example.com");
        found.add("api.base_url", problem);
    }
}

/// Rejects log filters that `tracing` cannot parse.
fn check_filter(filter: &str, found: &mut Problems) {
    if let Err(error) = EnvFilter::try_new(filter) {
        let problem =
            format!("{filter:?} is not a filter ({error}); try info, or info,assurance=debug");
        found.add("log.filter", problem);
    }
}
