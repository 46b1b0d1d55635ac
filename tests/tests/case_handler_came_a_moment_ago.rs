//! A handler that blocks every signal is installed for a real-time signal right after a set. What
//! would go wrong: the next set still believes what it looked up a moment ago, writes traps, and the
//! first one that the handler runs into kills the process.
//!
//! CASES 10, for handlers.

#![allow(unsafe_code)]

use immediate::{Config, Error, Immediate, Protocol, Reason, Refusal, immediate, immediate_read};
use immediate_tests::signals;

#[immediate]
static VALUE: Immediate<u64> = Immediate::new(0);

extern "C" fn handler(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    std::hint::black_box(immediate_read!(VALUE));
}

#[test]
fn the_next_set_sees_the_handler() {
    let config = Config { protocol: Some(Protocol::Int3), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
    let signal = libc::SIGRTMIN() + 4;
    VALUE.set(1).expect("every thread can trap");
    signals::install(signal, handler, signals::every(), libc::SA_RESTART);
    if immediate_tests::has_sites() {
        let error = VALUE.set(2).expect_err("the handler blocks SIGTRAP");
        let Error::Refused(Refusal::NoProtocol(rejected)) = &error else { panic!("{error}") };
        let named = rejected.iter().any(|one| {
            one.protocol == Protocol::Int3 && one.reason == Reason::HandlerBlocksTrap { signal }
        });
        assert!(named, "{error}");
        assert_eq!((immediate_read!(VALUE), VALUE.get()), (1, 1));
    }
}
