//! Tests of the sandbox's guarantees, with guests that try to break them.

mod contract_component;
mod sandbox;
mod write_lock;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assurance_core::area_log::LogLevel;
use assurance_core::config::AreaCallLimits;
use assurance_core::domain::id::WorkspaceId;
use assurance_core::domain::job::{JobFailure, JobOutcome};
use assurance_core::domain::manifest::Capability;
use assurance_runtime::{LoadError, LoadedArea, Settings};
use assurance_work::{CallError, CommitAdditions};
use contract_component::wants_everything;
use sandbox::{Sandbox, body, settings, settings_with};

/// Creates a sandbox and loads a fixture guest.
async fn loaded(fixture: &str) -> (Sandbox, LoadedArea) {
    let sandbox = Sandbox::new(settings()).await;
    let area = sandbox.load(fixture).await.expect("a fixture that loads");
    (sandbox, area)
}

#[tokio::test]
async fn a_healthy_guest_says_what_it_is_and_answers() {
    let (sandbox, echo) = loaded("echo").await;
    assert_eq!(echo.manifest.name, "echo");
    assert_eq!(echo.digest.len(), 64);
    assert!(echo.imports.iter().any(|import| import.contains("crypto")), "{:?}", echo.imports);
    let ended = sandbox.handle(&echo, "echo", r#"{"a":1}"#, 1000).await;
    assert!(ended.unit.is_some(), "the unit of work comes back");
    assert_eq!(body(ended.result), r#"{"a":1}"#);
}

#[tokio::test]
async fn all_of_each_generation_is_linked_with_the_types_it_had() {
    let sandbox = Sandbox::new(settings()).await;
    for folder in ["wit", "wit/0.1.0", "wit/0.2.0"] {
        let loaded =
            sandbox.runtime.load(wants_everything(folder).into(), |_| BTreeSet::new()).await;
        // Its functions are empty, so it describes nothing; it is linked before.
        let refused = loaded.err().expect("it has no manifest");
        assert!(matches!(refused, LoadError::Describe(_)), "{folder}: {refused}");
    }
}

#[tokio::test]
async fn a_job_ends_as_the_guest_says() {
    let (sandbox, echo) = loaded("echo").await;
    let run = async |kind: &str| {
        let unit = sandbox.unit("echo", true);
        let job = sandbox.job(kind);
        echo.code.run(unit, &job, Duration::from_secs(1)).await.result.unwrap()
    };
    assert_eq!(run("work").await, Ok(JobOutcome::Done));
    assert_eq!(run("continue").await, Ok(JobOutcome::Continue(r#"{"step":1}"#.to_owned())));
    assert_eq!(run("fail").await, Err(JobFailure::Fail("asked to".to_owned())));
}

#[tokio::test]
async fn an_area_of_the_sdk_answers() {
    let (sandbox, hello) = loaded("hello").await;
    let ended = sandbox.handle(&hello, "say_hello", r#"{"name":"you"}"#, 1000).await;
    assert_eq!(body(ended.result), r#"{"text":"Hello, you!"}"#);
}

#[tokio::test]
async fn wasi_is_an_empty_world_that_is_the_same_at_every_run() {
    let (sandbox, foreign) = loaded("imports-wasi").await;
    let first = body(sandbox.answer(&foreign, "look").await);
    assert!(first.contains(r#""seconds":1700000000,"#), "{first}");
    assert!(first.contains(r#""variables":0,"arguments":0"#), "{first}");
    assert_eq!(body(sandbox.answer(&foreign, "look").await), first);
}

#[tokio::test]
async fn what_a_guest_prints_is_in_its_areas_log() {
    let (sandbox, foreign) = loaded("imports-wasi").await;
    body(sandbox.answer(&foreign, "print").await);
    let page = sandbox.runtime.area_logs().find("imports_wasi").unwrap().page(None, 10);
    let lines = page.lines.iter();
    let lines: Vec<_> = lines.map(|line| (line.what.level, line.what.message.as_str())).collect();
    let expected = [
        (LogLevel::Error, "a warning"),
        (LogLevel::Info, "second"),
        (LogLevel::Info, "without an end"),
    ];
    assert_eq!((lines[0], &lines[1..]), ((LogLevel::Info, "first"), &expected[..]));
}

#[tokio::test]
async fn what_is_not_a_number_is_the_same_on_every_processor() {
    let (sandbox, echo) = loaded("echo").await;
    assert_eq!(body(sandbox.answer(&echo, "not_a_number").await), r#"{"bits":"7ff8000000000000"}"#);
}

// ----- time -----

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_loop_ends_at_its_deadline() {
    let sandbox = Sandbox::new(settings()).await;
    for fixture in ["infinite-loop", "bulk-memory-loop"] {
        let looping = sandbox.load(fixture).await.unwrap();
        let begun = Instant::now();
        let ended = sandbox.handle(&looping, "loop", "{}", 200).await;
        assert!(matches!(ended.result, Err(CallError::Deadline(_))), "{:?}", ended.result);
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(195), "{fixture}: {took:?}");
        assert!(took < Duration::from_millis(1500), "{fixture}: {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn healthy_calls_are_answered_while_others_loop() {
    let sandbox = Arc::new(Sandbox::new(settings()).await);
    let echo = sandbox.load("echo").await.unwrap();
    let mut loops = Vec::new();
    for fixture in ["infinite-loop", "bulk-memory-loop"] {
        let looping = sandbox.load(fixture).await.unwrap();
        for _ in 0..3 {
            let (sandbox, looping) = (sandbox.clone(), looping.clone());
            loops.push(tokio::spawn(async move {
                sandbox.handle(&looping, "loop", "{}", 2000).await.result
            }));
        }
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..200 {
        let begun = Instant::now();
        assert_eq!(body(sandbox.answer(&echo, "echo").await), "{}");
        slowest = slowest.max(begun.elapsed());
    }
    assert!(loops.iter().all(|looping| !looping.is_finished()), "the loops still run");
    assert!(slowest < Duration::from_millis(200), "the slowest took {slowest:?}");
    for looping in loops {
        assert!(matches!(looping.await.unwrap(), Err(CallError::Deadline(_))));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_its_client_abandons_is_charged_all_the_same() {
    let (sandbox, looping) = loaded("infinite-loop").await;
    let call = sandbox.handle(&looping, "loop", "{}", 5000);
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    let charged = || {
        let areas = sandbox.runtime.budgets().areas();
        areas.iter().any(|area| area.this_minute.calls == 1 && area.this_minute.cpu_us > 0)
    };
    for _ in 0..500 {
        if charged() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:?}", sandbox.runtime.budgets().areas());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_call_that_ends_in_time_is_answered() {
    let (sandbox, looping) = loaded("infinite-loop").await;
    assert_eq!(body(sandbox.answer(&looping, "for_a_while").await), "{}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_area_has_so_many_long_calls_and_no_more() {
    let one = settings_with(|config| config.runtime.max_long_calls_per_area = 1);
    let sandbox = Sandbox::new(one).await;
    let looping = sandbox.load("infinite-loop").await.unwrap();
    let (one, other) = tokio::join!(
        sandbox.handle(&looping, "loop", "{}", 500),
        sandbox.handle(&looping, "loop", "{}", 500),
    );
    let overloaded = [&one.result, &other.result]
        .into_iter()
        .filter(|result| matches!(result, Err(CallError::Overloaded)));
    assert_eq!(overloaded.count(), 1, "{:?} {:?}", one.result, other.result);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_area_has_so_many_calls_and_no_more() {
    let one = settings_with(|config| config.runtime.max_concurrent_per_area = 1);
    let sandbox = Sandbox::new(one).await;
    let looping = sandbox.load("infinite-loop").await.unwrap();
    let echo = sandbox.load("echo").await.unwrap();
    let long = sandbox.handle(&looping, "loop", "{}", 500);
    let others = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let ended = sandbox.handle(&looping, "loop", "{}", 500).await;
        assert!(matches!(ended.result, Err(CallError::Overloaded)), "{:?}", ended.result);
        assert!(ended.unit.is_some());
        assert_eq!(body(sandbox.answer(&echo, "echo").await), "{}", "other areas are not held up");
    };
    tokio::join!(long, others);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_free_instance_a_call_is_refused_as_overloaded() {
    let sandbox = Sandbox::new(settings_with(|config| config.runtime.max_instances = 1)).await;
    let looping = sandbox.load("infinite-loop").await.unwrap();
    let echo = sandbox.load("echo").await.unwrap();
    let other = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let refused = sandbox.answer(&echo, "echo").await;
        assert!(matches!(refused, Err(CallError::Overloaded)), "{refused:?}");
    };
    tokio::join!(sandbox.handle(&looping, "loop", "{}", 300), other);
    assert_eq!(body(sandbox.answer(&echo, "echo").await), "{}");
}

// ----- memory -----

#[tokio::test]
async fn memory_is_capped_and_running_out_is_told_from_a_trap() {
    let (sandbox, hog) = loaded("memory-hog").await;
    let refused = sandbox.answer(&hog, "hog").await;
    assert!(matches!(refused, Err(CallError::OutOfMemory(_))), "{refused:?}");
    let polite = body(sandbox.answer(&hog, "politely").await);
    let mebibytes: u32 = polite.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    assert!((40..64).contains(&mebibytes), "{polite}");
}

#[tokio::test]
async fn one_area_may_have_more_than_others() {
    let more = AreaCallLimits { max_memory_bytes: Some(128 << 20), ..AreaCallLimits::default() };
    let areas = [("memory_hog".to_owned(), more)].into();
    let sandbox = Sandbox::new(settings_with(|config| config.areas.limits = areas)).await;
    let hog = sandbox.load("memory-hog").await.unwrap();
    let polite = body(sandbox.answer(&hog, "politely").await);
    let mebibytes: u32 = polite.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
    assert!((100..128).contains(&mebibytes), "{polite}");
}

#[tokio::test]
async fn memory_of_all_instances_is_capped_too() {
    let few = settings_with(|config| config.runtime.max_total_memory_bytes = 8 << 20);
    let sandbox = Sandbox::new(few).await;
    let hog = sandbox.load("memory-hog").await.unwrap();
    let refused = sandbox.answer(&hog, "hog").await;
    assert!(matches!(refused, Err(CallError::Overloaded)), "{refused:?}");
}

#[tokio::test]
async fn no_call_sees_anything_of_an_earlier_one() {
    // With one slot, every call gets the memory of the previous one.
    let sandbox = Sandbox::new(settings_with(|config| config.runtime.max_instances = 1)).await;
    let keeper = sandbox.load("keeps-state").await.unwrap();
    for _ in 0..3 {
        assert_eq!(body(sandbox.answer(&keeper, "count").await), r#"{"calls":1}"#);
    }
    let both = body(sandbox.answer(&keeper, "both").await);
    assert_eq!(both, r#"{"filled":3145728,"found":3145728}"#, "the search itself works");
    for _ in 0..3 {
        body(sandbox.answer(&keeper, "fill").await);
        assert_eq!(body(sandbox.answer(&keeper, "look").await), r#"{"found":0}"#);
    }
}

#[tokio::test]
async fn a_stack_overflow_is_a_trap_like_any_other() {
    let (sandbox, deep) = loaded("stack-overflow").await;
    for _ in 0..3 {
        let trapped = sandbox.answer(&deep, "deep").await;
        assert!(matches!(trapped, Err(CallError::Trap(_))), "{trapped:?}");
    }
}

// ----- budgets -----

#[tokio::test]
async fn a_reply_has_a_largest_size() {
    let (sandbox, giant) = loaded("giant-reply").await;
    for operation in ["one", "many"] {
        let refused = sandbox.answer(&giant, operation).await;
        assert!(matches!(refused, Err(CallError::Limit(_))), "{operation}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn host_calls_are_counted() {
    let (sandbox, flood) = loaded("host-call-flood").await;
    let refused = sandbox.answer(&flood, "flood").await;
    assert!(matches!(refused, Err(CallError::Limit(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_log_lines_are_dropped_and_the_call_goes_on() {
    let (sandbox, flood) = loaded("log-flood").await;
    assert_eq!(body(sandbox.answer(&flood, "flood").await), "{}");
}

// ----- the transaction around a call -----

#[tokio::test]
async fn what_a_call_wrote_is_kept_if_it_is_committed() {
    let (sandbox, echo) = loaded("echo").await;
    let put = sandbox.handle(&echo, "put", r#"{"text":"kept"}"#, 1000).await;
    assert_eq!(body(put.result), r#"{"versions":[1]}"#);
    assert_eq!(body(sandbox.answer(&echo, "get").await), r#"{"found":false}"#);
    put.unit.unwrap().commit(CommitAdditions::default()).await.unwrap();
    assert_eq!(body(sandbox.answer(&echo, "get").await), r#"{"text":"kept"}"#);
}

#[tokio::test]
async fn no_spelling_reaches_another_workspace_or_area() {
    let mut sandbox = Sandbox::new(settings()).await;
    let victim = sandbox.workspace;
    let echo = sandbox.load("echo").await.unwrap();
    let snoop = sandbox.load("names-other-workspace").await.unwrap();
    let put = sandbox.handle(&echo, "put", r#"{"text":"secret"}"#, 1000).await;
    put.unit.unwrap().commit(CommitAdditions::default()).await.unwrap();
    for workspace in [victim, WorkspaceId::new()] {
        sandbox.workspace = workspace;
        let snooped = sandbox.handle(&snoop, "snoop", &victim.to_string(), 1000).await;
        assert_eq!(body(snooped.result), r#"{"got":[]}"#);
    }
}

// ----- reports of a failure -----

#[tokio::test]
async fn a_trap_is_reported_with_its_stack_and_the_last_lines() {
    let (sandbox, falling) = loaded("trap").await;
    sandbox::log::capture();
    let trapped = sandbox.answer(&falling, "fall").await;
    let seen = sandbox::log::captured();
    let Err(CallError::Trap(why)) = trapped else { panic!("{trapped:?}") };
    assert!(why.contains("unreachable"), "{why}");
    for expected in ["fixture_trap::fall_over", "about to fall over", "area.name=trap"] {
        assert!(seen.contains(expected), "no {expected:?} in: {seen}");
    }
    assert!(seen.contains(&falling.digest[..12]), "{seen}");
}

#[tokio::test]
async fn a_panic_is_the_reason_of_its_fault() {
    let (sandbox, panicking) = loaded("panics-as-marked").await;
    let text = r#"{"text":"a\nthing"}"#;
    let fault = sandbox.handle(&panicking, "write_thing", text, 1000).await.result.unwrap_err();
    let CallError::Panic(why) = fault else { panic!("{fault:?}") };
    assert!(why.starts_with("panicked at guests/fixtures/panics-as-marked/src/lib.rs:"), "{why}");
    assert!(why.ends_with(": a thing has no number"), "{why}");
}

#[tokio::test]
async fn an_exception_is_the_reason_of_its_fault() {
    let (sandbox, foreign) = loaded("imports-wasi").await;
    let fault = sandbox.answer(&foreign, "raise").await.unwrap_err();
    let CallError::Panic(why) = fault else { panic!("{fault:?}") };
    assert_eq!(why, "ValueError: wrong (File \"/app.py\", line 8, in handle)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_is_named_with_its_value_and_its_setting() {
    let sandbox = Sandbox::new(settings()).await;
    let cases = [
        ("host-call-flood", "more than 20000 host calls (runtime.max_host_calls;"),
        ("memory-hog", "more than 67108864 bytes of memory (runtime.max_memory_bytes;"),
        ("giant-reply", "(runtime.max_reply_bytes)"),
        ("infinite-loop", "its deadline of 200ms (`deadline_ms` of its route"),
    ];
    for (fixture, expected) in cases {
        let loaded = sandbox.load(fixture).await.unwrap();
        let deadline_ms = if fixture == "infinite-loop" { 200 } else { 10_000 };
        let ended = sandbox.handle(&loaded, "one", "{}", deadline_ms).await;
        let fault = ended.result.unwrap_err().to_string();
        assert!(fault.contains(expected), "{fixture}: {fault}");
    }
}

// ----- loading -----

#[tokio::test]
async fn a_missing_grant_refuses_the_component_by_name() {
    let sandbox = Sandbox::new(settings()).await;
    let refused = sandbox.load_with("asks-ungranted", &[Capability::Log]).await.err().unwrap();
    assert!(matches!(refused, LoadError::MissingGrant { .. }), "{refused}");
    assert!(refused.to_string().contains("`egress`"), "{refused}");
    assert!(refused.to_string().contains("asks_ungranted"), "{refused}");
    assert!(refused.to_string().contains("list all capabilities"), "{refused}");
}

#[tokio::test]
async fn the_network_is_for_jobs_only() {
    let (sandbox, asking) = loaded("asks-ungranted").await;
    let told = body(sandbox.answer(&asking, "send").await);
    assert!(told.contains("NotInAJob"), "{told}");
}

#[tokio::test]
async fn an_import_that_the_manifest_does_not_ask_for_is_refused() {
    let sandbox = Sandbox::new(settings()).await;
    let refused = sandbox.load("uses-unwished").await.err().unwrap();
    assert!(matches!(refused, LoadError::Manifest(_)), "{refused}");
    assert!(refused.to_string().contains("crypto"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn describe_runs_under_limits_and_without_capabilities() {
    let sandbox = Sandbox::new(settings()).await;
    let panicking = sandbox::marked("panics-as-marked", b"panics:write...", b"describe");
    let granted = assurance_runtime::every_capability;
    let refused = sandbox.runtime.load(panicking, |_| granted()).await.err().unwrap().to_string();
    assert!(refused.starts_with("`describe` failed: panicked at "), "{refused}");
    assert!(refused.ends_with("things: documents have no member number"), "{refused}");
    let refused = sandbox.load("abort-in-describe").await.err().unwrap();
    assert!(matches!(refused, LoadError::Describe(CallError::Trap(_))), "{refused}");
    let refused = sandbox.load("loop-in-describe").await.err().unwrap();
    assert!(matches!(refused, LoadError::Describe(CallError::CpuTime(_))), "{refused}");
    let refused = sandbox.load("capability-in-describe").await.err().unwrap();
    assert!(matches!(refused, LoadError::Describe(CallError::Contract(_))), "{refused}");
    assert!(refused.to_string().contains("Documents"), "{refused}");
}

#[tokio::test]
async fn what_is_no_area_is_refused() {
    let sandbox = Sandbox::new(settings()).await;
    let refused = sandbox.load("wrong-world").await.err().unwrap();
    assert!(matches!(refused, LoadError::WrongWorld(_)), "{refused}");
    let none = std::collections::BTreeSet::new;
    for bytes in [&b"\0asm\x01\0\0\0"[..], b"", b"random bytes", b"\0asm\x0d\0\x01\0\xff\xff"] {
        let refused = sandbox.runtime.load(bytes.into(), |_| none()).await.err().unwrap();
        assert!(matches!(refused, LoadError::NotAComponent(_)), "{refused}");
    }
    let small = settings_with(|config| config.limits.max_component_bytes = 1000);
    let refused = Sandbox::new(small).await.load("echo").await.err().unwrap();
    assert!(matches!(refused, LoadError::TooLarge { max: 1000, .. }), "{refused}");
}

// ----- the compiled cache -----

#[tokio::test]
async fn a_compiled_component_is_kept_and_used_only_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let cached = Settings { cache_dir: Some(folder.path().join("compiled")), ..settings() };
    let load = async || Sandbox::new(cached.clone()).await.load("echo").await.unwrap();
    assert!(load().await.compiled_in.is_some(), "compiled");
    assert!(load().await.compiled_in.is_none(), "kept");

    let mut files = std::fs::read_dir(folder.path().join("compiled")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none(), "one file");
    assert_eq!(sandbox::mode(&file), 0o600);
    assert_eq!(sandbox::mode(file.parent().unwrap()), 0o700);

    let mut altered = std::fs::read(&file).unwrap();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    std::fs::write(&file, &altered).unwrap();
    assert!(load().await.compiled_in.is_some(), "an altered file is not used");
    assert!(load().await.compiled_in.is_none(), "and is replaced");
    std::fs::write(&file, b"short").unwrap();
    assert!(load().await.compiled_in.is_some(), "nor is a broken one");
}

#[tokio::test]
async fn what_was_compiled_is_loaded_without_its_component() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { cache_dir: Some(folder.path().to_owned()), ..settings() };
    let first = Sandbox::new(settings.clone()).await;
    let digest = first.load("echo").await.unwrap().digest;
    let second = Sandbox::new(settings).await;
    let kept = async |digest: &str| {
        second.runtime.load_cached(digest, |_| assurance_runtime::every_capability()).await
    };
    let echo = kept(&digest).await.unwrap().unwrap();
    assert_eq!((echo.digest.as_str(), echo.compiled_in), (digest.as_str(), None));
    assert_eq!(body(second.answer(&echo, "hello").await), r#"{"hello":"world"}"#);
    assert!(kept(&"0".repeat(64)).await.unwrap().is_none(), "nobody compiled that");
}

#[tokio::test]
async fn what_one_host_compiled_another_of_the_installation_takes_in_as_it_is() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |folder: &tempfile::TempDir| Settings {
        cache_dir: Some(folder.path().to_owned()),
        ..settings()
    };
    let (first, second) = (Sandbox::new(at(&one)).await, Sandbox::new(at(&other)).await);
    let digest = first.load("echo").await.unwrap().digest;
    let sealed = first.runtime.cache().unwrap().read(&digest).unwrap();
    let cache = second.runtime.cache().unwrap();
    let mut altered = sealed.clone();
    *altered.last_mut().unwrap() ^= 1;
    assert!(cache.insert_sealed(&digest, &altered).is_err(), "altered");
    assert!(cache.insert_sealed(&"0".repeat(64), &sealed).is_err(), "under another's name");
    assert!(!cache.has(&digest));
    cache.insert_sealed(&digest, &sealed).unwrap();
    assert!(cache.has(&digest));
    assert!(second.load("echo").await.unwrap().compiled_in.is_none(), "nothing is compiled");
}
