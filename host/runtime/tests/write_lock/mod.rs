//! Tests of calls that block other writers, or write on a read-only route.

use assurance_core::config::AreaCallLimits;
use assurance_work::{CallError, UnitOfWork, UnitOfWorkSpec};

use crate::sandbox::{Sandbox, settings_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_pause_for_nine_times_as_long_as_a_call_kept_others_from_writing() {
    for (cpu_ms, wall_ms, pause_s) in [(60_000, 300, 3..60), (500, 60_000, 1..6)] {
        let limits = AreaCallLimits {
            max_turn_cpu_ms: Some(cpu_ms),
            max_turn_ms: Some(wall_ms),
            ..AreaCallLimits::default()
        };
        let areas = [("holds_turn".to_owned(), limits)].into();
        let sandbox = Sandbox::new(settings_with(|config| config.areas.limits = areas)).await;
        let holding = sandbox.load("holds-turn").await.unwrap();
        let ended = sandbox.answer(&holding, "hold").await;
        assert!(matches!(ended, Err(CallError::Turn { .. })), "{ended:?}");
        let pauses = sandbox.runtime.budgets().write_pauses();
        let paused = pauses.check("holds_turn", sandbox.workspace).unwrap_err();
        assert!(pause_s.contains(&paused.retry_after_s), "{paused:?}");
    }
}

#[tokio::test]
async fn a_secret_that_a_read_only_route_stores_ends_the_call() {
    let sandbox = Sandbox::new(settings_with(|_| ())).await;
    let stores = sandbox.load("sends-secret").await.unwrap();
    let writing = sandbox.unit("sends_secret", false);
    let spec = UnitOfWorkSpec { writes: false, ..writing.spec().clone() };
    let unit = UnitOfWork::new(sandbox.store.clone(), sandbox.keys.clone(), spec);
    let request = sandbox.request("put", r#"{"put":"hush"}"#);
    let ended = stores.code.handle(unit, &request, std::time::Duration::from_secs(5)).await;
    let why = ended.result.unwrap_err().to_string();
    assert!(why.contains("the route is read-only"), "{why}");
}
