//! What the types of the configuration cannot say.

mod blobs;

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::config::{Config, ConfigError};
use crate::domain::job::Lane;

impl Config {
    /// Refuses values that would only fail later, or not be safe.
    pub(in crate::config) fn check(&self) -> Result<(), ConfigError> {
        self.check_addresses()?;
        self.check_database()?;
        self.check_blobs()?;
        self.check_positive()?;
        self.check_lanes()?;
        self.check_passwords()?;
        self.check_times()?;
        self.check_publishers()?;
        self.check_area_limits()?;
        self.check_canary()?;
        self.check_record()?;
        self.check_budgets()?;
        self.check_mail()?;
        crate::telemetry::check_filter(&self.log.filter)
            .map_err(|problem| wrong("log.filter", problem))
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        if let Some(base) = &self.api.base_url {
            check_base_url(base)?;
        }
        if !self.session.cookie_secure && !self.api.listen.ip().is_loopback() {
            let problem = format!(
                "the session cookie may only travel without https on a loopback listener, and \
                 api.listen is {}; set it to true, or listen on 127.0.0.1",
                self.api.listen
            );
            return Err(wrong("session.cookie_secure", problem));
        }
        if self.api.listen == self.operators.listen && self.api.listen.port() != 0 {
            let problem = "is the same address as api.listen; give operators a port of their own";
            return Err(wrong("operators.listen", problem));
        }
        for (index, proxy) in self.api.trusted_proxies.iter().enumerate() {
            if proxy.parse::<IpAddr>().is_err() && proxy.parse::<ipnet::IpNet>().is_err() {
                let problem =
                    format!("{proxy:?} is neither an address nor a network like 10.0.0.0/8");
                return Err(wrong(&format!("api.trusted_proxies[{index}]"), problem));
            }
        }
        Ok(())
    }

    fn check_database(&self) -> Result<(), ConfigError> {
        let known = ["sqlite:", "postgres://", "postgresql://"];
        match &self.database.url {
            Some(url) if !known.iter().any(|scheme| url.reveal().starts_with(scheme)) => {
                let problem = "must begin with sqlite:// or postgres://";
                Err(wrong("database.url", problem))
            }
            _ => Ok(()),
        }
    }

    fn check_positive(&self) -> Result<(), ConfigError> {
        let numbers = [
            ("api.drain_seconds", self.api.drain_seconds),
            ("api.max_connections", self.api.max_connections),
            ("api.max_connections_per_address", self.api.max_connections_per_address),
            ("readiness.max_clock_difference_ms", self.readiness.max_clock_difference_ms),
            ("database.max_connections", self.database.max_connections),
            ("areas.poll_ms", self.areas.poll_ms),
            ("areas.max_stale_ms", self.areas.max_stale_ms),
            ("areas.warm_versions", self.areas.warm_versions),
            ("areas.canary.min_calls", self.areas.canary.min_calls),
            ("areas.shadow.max_concurrent", self.areas.shadow.max_concurrent),
            ("areas.record.max_files", self.areas.record.max_files),
            ("session.idle_minutes", self.session.idle_minutes),
            ("session.absolute_hours", self.session.absolute_hours),
            ("session.max_per_user", self.session.max_per_user),
            ("passwords.max_concurrent", self.passwords.max_concurrent),
            ("sign_in.account_daily_failures", self.sign_in.account_daily_failures),
            ("sign_in.backoff_first_seconds", self.sign_in.backoff_first_seconds),
            ("sign_in.recent_minutes", self.sign_in.recent_minutes),
            ("sign_in.recovery_failures", self.sign_in.recovery_failures),
            ("rates.session_per_minute", self.rates.session_per_minute),
            ("rates.workspace_per_minute", self.rates.workspace_per_minute),
            ("rates.sign_in_per_minute", self.rates.sign_in_per_minute),
            ("rates.unknown_sessions_per_minute", self.rates.unknown_sessions_per_minute),
            ("rates.pages_per_minute", self.rates.pages_per_minute),
            ("rates.share_ms", self.rates.share_ms),
            ("limits.min_upload_rate", self.limits.min_upload_rate),
            ("limits.min_download_rate", self.limits.min_download_rate),
            ("limits.idle_timeout_ms", self.limits.idle_timeout_ms),
            ("limits.deadline_ms", self.limits.deadline_ms),
            ("limits.max_documents", self.limits.max_documents),
            ("idempotency.keep_hours", self.idempotency.keep_hours),
            ("runtime.max_instances", self.runtime.max_instances),
            ("runtime.max_concurrent_per_area", self.runtime.max_concurrent_per_area),
            ("runtime.max_overstaying_per_area", self.runtime.max_overstaying_per_area),
            ("runtime.epoch_tick_ms", self.runtime.epoch_tick_ms),
            ("runtime.max_host_calls", self.runtime.max_host_calls),
            ("runtime.max_turn_cpu_ms", self.runtime.max_turn_cpu_ms),
            ("runtime.max_turn_ms", self.runtime.max_turn_ms),
            ("runtime.max_compile_cpu_ms", self.runtime.max_compile_cpu_ms),
            ("runtime.max_compile_ms", self.runtime.max_compile_ms),
            ("jobs.poll_ms", self.jobs.poll_ms),
            ("jobs.heartbeat_ms", self.jobs.heartbeat_ms),
            ("jobs.max_timeout_ms", self.jobs.max_timeout_ms),
            ("jobs.max_waiting_per_area", self.jobs.max_waiting_per_area),
            ("egress.connect_timeout_ms", self.egress.connect_timeout_ms),
            ("egress.max_timeout_ms", self.egress.max_timeout_ms),
            ("malware.timeout_ms", self.malware.timeout_ms),
            ("mail.timeout_ms", self.mail.timeout_ms),
        ];
        if let Some((key, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            return Err(wrong(key, "is 0, and must be at least 1"));
        }
        match self.areas.manifest.all().into_iter().find(|(_, number)| *number == 0) {
            Some((name, _)) => {
                Err(wrong(&format!("areas.manifest.{name}"), "is 0, and must be at least 1"))
            }
            None => Ok(()),
        }
    }

    fn check_lanes(&self) -> Result<(), ConfigError> {
        for lane in Lane::ALL {
            let share = self.jobs.lanes.of(lane);
            let parts = [
                ("workspace_percent", share.workspace_percent),
                ("resource_percent", share.resource_percent),
            ];
            for (key, percent) in parts {
                if !(1..=100).contains(&percent) {
                    let problem = format!("is {percent}, and must be 1 to 100");
                    return Err(wrong(&format!("jobs.lanes.{lane}.{key}"), problem));
                }
            }
        }
        Ok(())
    }

    fn check_passwords(&self) -> Result<(), ConfigError> {
        let set = &self.passwords;
        if set.memory_kib < 8 * set.parallelism.max(1) || set.memory_kib > 4_194_304 {
            return Err(wrong("passwords.memory_kib", "must be 8 per lane to 4194304"));
        }
        if !(1..=64).contains(&set.iterations) {
            return Err(wrong("passwords.iterations", "must be 1 to 64"));
        }
        if !(1..=64).contains(&set.parallelism) {
            return Err(wrong("passwords.parallelism", "must be 1 to 64"));
        }
        if !(8..=128).contains(&set.min_length) {
            return Err(wrong("passwords.min_length", "must be 8 to 128"));
        }
        Ok(())
    }

    fn check_publishers(&self) -> Result<(), ConfigError> {
        for (name, publisher) in &self.areas.publishers {
            let key = STANDARD.decode(&publisher.public_key);
            if key.is_ok_and(|key| key.len() == 32) {
                continue;
            }
            let problem = "must be the 32 bytes of an Ed25519 public key in base64, as `assurance \
                           key generate` prints them";
            return Err(wrong(&format!("areas.publishers.{name}.public_key"), problem));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        if self.session.cache_ms > 1_000 {
            let problem = "is more than 1000, and a revocation must show on every node at once";
            return Err(wrong("session.cache_ms", problem));
        }
        if self.session.idle_minutes > self.session.absolute_hours.saturating_mul(60) {
            let problem = "is longer than session.absolute_hours";
            return Err(wrong("session.idle_minutes", problem));
        }
        if self.jobs.heartbeat_ms.saturating_mul(2) > self.jobs.lease_ms {
            let problem = "must be at least twice jobs.heartbeat_ms, or healthy jobs are lost";
            return Err(wrong("jobs.lease_ms", problem));
        }
        if self.limits.max_deadline_ms < self.limits.deadline_ms {
            return Err(wrong("limits.max_deadline_ms", "is shorter than limits.deadline_ms"));
        }
        if self.areas.max_stale_ms < self.areas.poll_ms.saturating_mul(2) {
            let problem = "must be at least twice areas.poll_ms, or healthy nodes answer 503";
            return Err(wrong("areas.max_stale_ms", problem));
        }
        Ok(())
    }

    fn check_area_limits(&self) -> Result<(), ConfigError> {
        for (area, limits) in &self.areas.limits {
            let key = |name: &str| format!("areas.limits.{area}.{name}");
            let numbers = [
                ("max_memory_bytes", limits.max_memory_bytes),
                ("max_documents", limits.max_documents.map(u64::from)),
                ("max_document_bytes", limits.max_document_bytes),
                ("max_host_calls", limits.max_host_calls.map(u64::from)),
                ("max_cpu_ms", limits.max_cpu_ms.map(u64::from)),
                ("max_turn_cpu_ms", limits.max_turn_cpu_ms.map(u64::from)),
                ("max_turn_ms", limits.max_turn_ms.map(u64::from)),
            ];
            if let Some((name, _)) = numbers.into_iter().find(|(_, number)| *number == Some(0)) {
                return Err(wrong(&key(name), "is 0, and must be at least 1"));
            }
            let most = self.runtime.max_total_memory_bytes.min(MAX_MEMORY_BYTES);
            if limits.max_memory_bytes.is_some_and(|bytes| bytes > most) {
                let problem =
                    format!("is more than {most}, which is what all instances may have together");
                return Err(wrong(&key("max_memory_bytes"), problem));
            }
        }
        Ok(())
    }

    fn check_canary(&self) -> Result<(), ConfigError> {
        let canary = &self.areas.canary;
        if !(0.0..=1.0).contains(&canary.max_fault_rate_difference) {
            let problem = "must be a share from 0 to 1; 0.02 is two calls in a hundred";
            return Err(wrong("areas.canary.max_fault_rate_difference", problem));
        }
        if canary.max_p99_factor.is_nan() || canary.max_p99_factor < 1.0 {
            return Err(wrong("areas.canary.max_p99_factor", "must be at least 1"));
        }
        Ok(())
    }

    fn check_record(&self) -> Result<(), ConfigError> {
        if !(0.0..=100.0).contains(&self.areas.record.percent) {
            let problem = "must be from 0 to 100; 1 is one request in a hundred";
            return Err(wrong("areas.record.percent", problem));
        }
        Ok(())
    }

    fn check_budgets(&self) -> Result<(), ConfigError> {
        let budgets = &self.budgets;
        if !(1..=100).contains(&budgets.warn_percent) {
            return Err(wrong("budgets.warn_percent", "must be from 1 to 100"));
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
            if let Some((key, _)) = numbers.into_iter().find(|(_, number)| *number == Some(0)) {
                let problem = "is 0, and must be at least 1; leave it out for no bound";
                return Err(wrong(&format!("budgets.{name}.{key}"), problem));
            }
        }
        Ok(())
    }

    fn check_mail(&self) -> Result<(), ConfigError> {
        let Some(url) = &self.mail.smtp_url else { return Ok(()) };
        // Without the reason, which might quote a password.
        let url = url::Url::parse(url.reveal())
            .map_err(|_| wrong("mail.smtp_url", "is no URL like smtps://USER:PASSWORD@HOST"))?;
        if !matches!(url.scheme(), "smtp" | "smtps") || !url.has_host() {
            return Err(wrong("mail.smtp_url", "must begin with smtps:// or smtp:// and a host"));
        }
        if sends_password_openly(&url) {
            let problem = "would send its password in the clear; write smtps:// or ?tls=required";
            return Err(wrong("mail.smtp_url", problem));
        }
        if self.mail.from.is_none() {
            let problem = "is needed with mail.smtp_url: Assurance <assurance@example.com>";
            return Err(wrong("mail.from", problem));
        }
        Ok(())
    }
}

/// A password must not be told to everybody on the way.
fn sends_password_openly(url: &url::Url) -> bool {
    let required = url.query_pairs().any(|(key, value)| key == "tls" && value == "required");
    // Of a scheme that browsers do not know, the host is text.
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let here = host == "localhost" || host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    url.password().is_some() && url.scheme() == "smtp" && !required && !here
}

/// What a 32-bit guest can have at most.
const MAX_MEMORY_BYTES: u64 = 4 << 30;

fn check_base_url(base: &str) -> Result<(), ConfigError> {
    let url = url::Url::parse(base)
        .map_err(|error| wrong("api.base_url", format!("{base:?} is no URL: {error}")))?;
    let plain = matches!(url.scheme(), "http" | "https") && url.has_host();
    if !plain || url.path() != "/" || url.query().is_some() || !url.username().is_empty() {
        let problem =
            format!("{base:?} must be scheme and host alone, like https://api.example.com");
        return Err(wrong("api.base_url", problem));
    }
    Ok(())
}

fn wrong(key: &str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Key {
        key: key.to_owned(),
        problem: problem.into(),
        source_name: "the file, the environment or a flag".to_owned(),
    }
}
