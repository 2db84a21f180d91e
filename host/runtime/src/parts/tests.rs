//! Tests with small components that create many instances.

use super::*;

/// Parses a component in the WebAssembly text format.
fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("valid WebAssembly text")
}

/// Returns the text of nested components. On each level, `part` defines
/// `$part`, which is instantiated `wide` times.
fn nested(levels: usize, wide: usize, part: &str) -> String {
    if levels == 0 {
        return "(component)".to_owned();
    }
    let below = nested(levels - 1, wide, part).replacen("(component", "(component $below", 1);
    let instances = "(instance (instantiate $part))".repeat(wide);
    format!("(component {below} {part} {instances})")
}

const ITSELF: &str = "(alias outer 0 0 (component $part))";

#[test]
fn parts_that_instantiate_each_other_are_counted_before_they_are_made() {
    for part in [ITSELF, r#"(export $part "part" (component $below))"#] {
        let hostile = component(&nested(20, 10, part));
        assert!(hostile.len() < 2_000, "{}", hostile.len());
        let refused = check(&hostile).expect_err("it is accepted");
        assert!(refused.contains("at most 1000 instances"), "{refused}");
        assert_eq!(check(&component(&nested(3, 5, part))), Ok(()));
        let deep = check(&component(&nested(40, 1, part)));
        assert!(deep.is_err(), "it is nested deeper than any honest one");
    }
}

#[test]
fn a_part_of_an_outer_component_counts_as_what_it_stands_for() {
    let ten = "(instance (instantiate $c))".repeat(10);
    let text = |first: &str, second: &str| {
        format!(
            "(component $top
                (component $a (component $c) {first})
                (component (alias outer $top $a (component $c)) {second}
                    (instance (instantiate $c)))
                (instance (instantiate 1)))"
        )
    };
    assert_eq!(check(&component(&text(&ten, &ten))), Ok(()));
    let hundred = ten.repeat(10);
    let refused = check(&component(&text(&hundred, &hundred))).expect_err("it is accepted");
    assert!(refused.contains("it has 10202 instances"), "{refused}");
}

#[test]
fn a_component_that_is_passed_to_another_is_refused() {
    let taken = [
        r#"(component (component (import "c" (component $c)) (instance (instantiate $c))))"#,
        r#"(component (component
            (import "i" (instance $i (export "c" (component))))
            (alias export $i "c" (component $c)) (instance (instantiate $c))))"#,
    ];
    for text in taken {
        let refused = check(&component(text)).expect_err("it is accepted");
        assert!(refused.contains("define the component where it is instantiated"), "{refused}");
    }
}

#[test]
fn core_instances_and_definitions_are_counted_as_often_as_they_are_made() {
    let cores = |count: usize| {
        let inner = "(core instance (instantiate $m))".repeat(count);
        component(&format!(
            "(component (component $c (core module $m) {inner})
                (instance (instantiate $c)) (instance (instantiate $c)))"
        ))
    };
    assert_eq!(check(&cores(20)), Ok(()));
    let refused = check(&cores(21)).expect_err("it is accepted");
    assert!(refused.contains("it has 42 instances of core modules"), "{refused}");

    let types = "(type string)".repeat(2_000);
    let instances = "(instance (instantiate $c))".repeat(900);
    let many = component(&format!("(component (component $c {types}) {instances})"));
    let refused = check(&many).expect_err("it is accepted");
    assert!(refused.contains("at most 1000000 definitions"), "{refused}");
}

#[test]
fn what_is_no_component_is_left_to_the_compiler() {
    assert_eq!(check(b"no component"), Ok(()));
    assert_eq!(check(&component("(component)")[..]), Ok(()));
    assert_eq!(check(&component("(module)")[..]), Ok(()));
}
