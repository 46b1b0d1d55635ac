//! Guarantee 2 with the protocol `int3`: a batch changes at one instant for all threads, all sites
//! and all variables.
//!
//! Readers read three variables of a batch at 210 sites, in an order that changes, and tell each
//! other the latest generation that they have seen. Whoever has been told of a generation must read
//! it or a later one, of every variable, at every site. What would go wrong: a thread, or two
//! threads that talk to each other, that see new at one site and then old at another.
//!
//! That the test can see it: with the handler giving the new value from the first trap on, or with
//! the protocol `quadword`, the same readers go back often (`guarantee_2_quadword`).

use immediate::{Config, Protocol};
use immediate_tests::torture::Bound;

#[path = "instant/mod.rs"]
mod instant;

#[test]
fn whoever_has_seen_new_sees_new_everywhere() {
    let config = Config { protocol: Some(Protocol::Int3), one_instant: true, ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    let seen = instant::run("one instant", Bound::new(20_000, 20));
    assert_eq!(seen.early, 0, "old after the set had returned");
    assert_eq!(seen.backwards_at_one_site, 0, "a thread went back at one site");
    // Plain loads give no instant: the values in memory change one after another.
    assert_eq!(immediate::status().one_instant, immediate_tests::has_sites());
    if immediate_tests::has_sites() {
        assert_eq!(seen.backwards, 0, "somebody went back");
        let last = immediate::status().last.expect("code was changed");
        assert_eq!(last.protocol, Protocol::Int3);
        assert!(last.sites >= 210, "{} sites are merged", last.sites);
    }
}
