//! A few seconds of fuzzing, and every input that was ever found.

use std::time::{Duration, Instant};

use assurance_fuzz::{Mutator, TARGETS, check, seeds};

/// Executions of each target.
const EXECUTIONS: usize = 1_000;
/// No further execution of a target begins after that, so that a slow machine
/// does not take minutes.
const TIME: Duration = Duration::from_secs(20);

#[test]
fn no_target_panics_expands_or_takes_long() {
    let found: Vec<String> = std::thread::scope(|scope| {
        let fuzz = |target: &'static assurance_fuzz::Target| {
            let seeds = seeds(target);
            let mut mutator = Mutator::new(seeds.clone(), 7);
            let began = Instant::now();
            let made = (0..EXECUTIONS).map(|_| mutator.next_input());
            let inputs = seeds.into_iter().chain(made.take_while(|_| began.elapsed() < TIME));
            let told = |input: Vec<u8>| {
                let finding = check(target, &input)?;
                let start = String::from_utf8_lossy(&input[..input.len().min(300)]).into_owned();
                Some(format!("{} {finding}: {start}", target.name))
            };
            inputs.filter_map(told).collect::<Vec<_>>()
        };
        let running: Vec<_> =
            TARGETS.iter().map(|target| scope.spawn(move || fuzz(target))).collect();
        running.into_iter().flat_map(|one| one.join().expect("a thread")).collect()
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn inputs_follow_from_their_number() {
    let inputs = |number| {
        let mut mutator = Mutator::new(vec![b"[1, 2]".to_vec()], number);
        (0..50).map(|_| mutator.next_input()).collect::<Vec<_>>()
    };
    assert_eq!(inputs(1), inputs(1));
    assert_ne!(inputs(1), inputs(2));
    assert!(inputs(1).iter().all(|input| input.len() <= 100_000));
}
