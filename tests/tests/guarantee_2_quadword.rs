//! Guarantee 2 with the protocol `quadword`: after a set has returned every read is new, no thread
//! goes back at one site, and the program is told that a batch is not one instant.
//!
//! What would go wrong: a program that relies on the instant and is not told that it has none; a
//! reader that still runs old instructions when the set has returned.

use immediate::{Config, Error, Protocol, Reason, Refusal};
use immediate_tests::child;
use immediate_tests::torture::Bound;

#[path = "instant/mod.rs"]
mod instant;

immediate_tests::scenarios!(
    refused_where_the_instant_is_required,
    refused_by_a_program_with_threads
);

/// With an instant required and only `quadword` allowed, nothing can be set and nothing changes.
fn refused_where_the_instant_is_required() {
    let config =
        Config { protocol: Some(Protocol::Quadword), one_instant: true, ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    if !immediate_tests::has_sites() {
        return;
    }
    let status = immediate::status();
    assert_eq!(status.protocol, None);
    let before = instant::read_all();
    let error = instant::set(1).expect_err("quadword is not one instant");
    let Error::Refused(Refusal::NoProtocol(rejected)) = &error else { panic!("{error}") };
    let reasons: Vec<_> = rejected.iter().map(|one| (one.protocol, one.reason.clone())).collect();
    assert!(reasons.contains(&(Protocol::Quadword, Reason::NotOneInstant)), "{reasons:?}");
    assert_eq!(status.refusal, Some(error.clone()), "status told it before");
    assert!(!error.to_string().contains('\n'), "one line: {error}");
    assert_eq!(instant::read_all(), before);
    assert_eq!(instant::backing(), (0, 0, false));
}

fn refused_by_a_program_with_threads() {
    std::thread::scope(|scope| {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || held.recv());
        refused_where_the_instant_is_required();
        drop(hold);
    });
}

#[test]
fn after_a_set_every_read_is_new() {
    for scenario in ["refused_where_the_instant_is_required", "refused_by_a_program_with_threads"] {
        child::succeed(scenario, &[]);
    }
    let config = Config { protocol: Some(Protocol::Quadword), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    let has_sites = immediate_tests::has_sites();
    assert!(!has_sites || !immediate::status().one_instant);
    let seen = instant::run("site by site", Bound::new(20_000, 20));
    println!("readers that were told of a generation before they saw it: {}", seen.backwards);
    assert_eq!(seen.early, 0, "old after the set had returned");
    assert_eq!(seen.backwards_at_one_site, 0, "a thread went back at one site");
    if has_sites {
        let last = immediate::status().last.expect("code was changed");
        assert_eq!(last.protocol, Protocol::Quadword);
    }
}
