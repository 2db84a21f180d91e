//! Fuzzes for a few seconds and runs all former findings.

use std::time::{Duration, Instant};

use assurance_fuzz::{Mutator, TARGETS, check, seeds};

/// Number of executions of each target.
const EXECUTIONS: usize = 1_000;
/// Time after which no further execution of a target begins, for slow machines.
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
                let finding = check(target, &input).err()?;
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
fn the_seeds_of_manifests_and_components_are_accepted() {
    let runs = |name: &str, input: &[u8]| {
        let target = TARGETS.iter().find(|target| target.name == name).expect("a target");
        (target.run)(input)
    };
    // The valid manifest yields its OpenAPI document.
    assert!(runs("manifest", b"") > 10_000, "{}", runs("manifest", b""));
    let component = TARGETS.iter().find(|target| target.name == "component").expect("a target");
    let longest = seeds(component).into_iter().max_by_key(Vec::len).expect("a seed");
    let text = String::from_utf8_lossy(&longest);
    assert!(text.contains("assurance:area/documents"), "it imports the contract");
    // The output has the names of the imports and no error message.
    assert!((100..1_000).contains(&runs("component", &longest)));
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
