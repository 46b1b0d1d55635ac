//! A trap whose handler is held back until its batch has ended, and until a second has ended. What
//! would go wrong: the handler no longer finds the site in the current batch, takes the trap for
//! somebody else's and kills the process; or it puts back a byte that is no longer the right one.
//!
//! Twice: by real threads, which are held in the first instruction of the trap handler by another
//! signal; and by calling the installed handler with a thread's registers as such a trap leaves
//! them.
//!
//! CASES 8.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use immediate::{Batch, Config, Error, Immediate, Protocol};
use immediate::{immediate, immediate_if, immediate_read};
use immediate_tests::alternate_stack::AlternateStack;
use immediate_tests::scatter::{WIDE_GENERATIONS, Wide, gather_wide, scatter_wide};
use immediate_tests::signals::{self, Handler, Targets};
use immediate_tests::torture::{self, Bound};
use immediate_tests::{child, maps};

#[immediate]
static WIDE: Immediate<Wide> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);

#[inline(never)]
fn read() -> (Wide, bool) {
    (immediate_read!(WIDE), immediate_if!(ODD))
}

fn set(generation: u64) -> Result<(), Error> {
    Batch::new().set(&WIDE, scatter_wide(generation)).set(&ODD, generation % 2 == 1).apply()
}

static SETS: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);
/// Enough: nobody is held any more.
static ENOUGH: AtomicBool = AtomicBool::new(false);

thread_local! {
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// Whether this thread has been held since its last read: not again, so that it goes on.
    static WAS_HELD: Cell<bool> = const { Cell::new(false) };
}

/// Holds the thread, if it is in the trap handler, until two sets more have ended.
extern "C" fn hold(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes the context of the interrupted thread.
    let context = unsafe { &*context.cast::<libc::ucontext_t>() };
    let stack_pointer = stack_pointer(context);
    let (start, end) = STACK.get();
    if !(start..end).contains(&stack_pointer) || ENOUGH.load(SeqCst) || WAS_HELD.replace(true) {
        return;
    }
    // It was interrupted on its alternate stack: in the trap handler, which alone runs there.
    let sets = SETS.load(SeqCst);
    let deadline = Instant::now() + Duration::from_secs(5);
    while SETS.load(SeqCst) < sets + 3 && !ENOUGH.load(SeqCst) && Instant::now() < deadline {
        std::hint::spin_loop();
    }
    if SETS.load(SeqCst) >= sets + 3 {
        HELD.fetch_add(1, SeqCst);
    }
}

cfg_select! {
    target_arch = "x86_64" => {
        fn stack_pointer(context: &libc::ucontext_t) -> usize {
            context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
        }
        fn counter(context: &mut libc::ucontext_t) -> &mut libc::greg_t {
            &mut context.uc_mcontext.gregs[libc::REG_RIP as usize]
        }
    }
    target_arch = "x86" => {
        fn stack_pointer(context: &libc::ucontext_t) -> usize {
            context.uc_mcontext.gregs[libc::REG_ESP as usize] as usize
        }
        fn counter(context: &mut libc::ucontext_t) -> &mut libc::greg_t {
            &mut context.uc_mcontext.gregs[libc::REG_EIP as usize]
        }
    }
    _ => {
        fn stack_pointer(_: &libc::ucontext_t) -> usize { 0 }
        fn counter(_: &mut libc::ucontext_t) -> &mut i64 { unreachable!("no traps here") }
    }
}

immediate_tests::scenarios!(threads_are_held, handler_is_called);

fn use_traps() {
    let config = Config { protocol: Some(Protocol::Int3), ..Config::default() };
    immediate::configure(config).expect("nothing has been set");
}

fn threads_are_held() {
    use_traps();
    signals::install(libc::SIGUSR1, hold, signals::set_of(&[]), libc::SA_RESTART);
    let targets = Targets::new();
    signals::storm(&targets, libc::SIGUSR1, Duration::ZERO, || {
        let reader = |_| {
            let stack = AlternateStack::install();
            STACK.set((stack.range().start, stack.range().end));
            targets.add_own();
            let mut last = 0;
            move || {
                let _ = &stack;
                WAS_HELD.set(false);
                let (value, _) = read();
                let generation = gather_wide(value).expect("no mixture");
                assert!(generation >= last, "{generation} after {last}");
                last = generation;
            }
        };
        let bound = Bound::new(1_000_000.min(WIDE_GENERATIONS - 1), 20);
        let deadline = bound.deadline() - Duration::from_secs(1);
        torture::run("held traps", bound, 2, reader, |generation| {
            let last = generation == bound.updates || Instant::now() > deadline;
            if last || HELD.load(SeqCst) >= 20 {
                ENOUGH.store(true, SeqCst);
            } else {
                set(generation).expect("every thread can trap");
                SETS.fetch_add(1, SeqCst);
            }
        });
    });
    let (held, sets) = (HELD.load(SeqCst), SETS.load(SeqCst));
    // How many depends on the machine; the other scenario does not.
    println!("{held} traps held until two later sets had ended, in {sets} sets");
}

static PASSED_ON: AtomicU64 = AtomicU64::new(0);
static PASSED_CODE: AtomicI32 = AtomicI32::new(0);
static PASSED_CONTEXT: AtomicUsize = AtomicUsize::new(0);

/// The program's own handler, from before the first set.
extern "C" fn own(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    PASSED_ON.fetch_add(1, SeqCst);
    // SAFETY: the library passes what it was given.
    PASSED_CODE.store(unsafe { (*info).si_code }, SeqCst);
    PASSED_CONTEXT.store(context.addr(), SeqCst);
}

/// Calls the library's handler as if a trap of the instruction before `address` came now; gives
/// where the thread goes on, and whether the trap was passed on.
fn trap(address: usize) -> (usize, bool) {
    let action = signals::current(libc::SIGTRAP);
    assert_eq!(action.sa_flags & libc::SA_SIGINFO, libc::SA_SIGINFO);
    assert_ne!(action.sa_sigaction, own as Handler as usize, "the library's is installed");
    // SAFETY: with SA_SIGINFO it is a function of this type.
    let handler: Handler = unsafe { std::mem::transmute(action.sa_sigaction) };
    // SAFETY: both are plain data, for which zeros are valid.
    let (mut info, mut context) =
        unsafe { (std::mem::zeroed::<libc::siginfo_t>(), std::mem::zeroed::<libc::ucontext_t>()) };
    info.si_code = libc::TRAP_BRKPT;
    *counter(&mut context) = address as _;
    let before = PASSED_ON.load(SeqCst);
    handler(libc::SIGTRAP, &raw mut info, (&raw mut context).cast());
    let passed = PASSED_ON.load(SeqCst) > before;
    if passed {
        assert_eq!(PASSED_CODE.load(SeqCst), libc::TRAP_BRKPT, "the same siginfo");
        assert_eq!(PASSED_CONTEXT.load(SeqCst), (&raw mut context).addr(), "the same context");
    }
    (*counter(&mut context) as usize, passed)
}

fn handler_is_called() {
    if !immediate_tests::has_sites() {
        return;
    }
    use_traps();
    signals::install(libc::SIGTRAP, own, signals::set_of(&[]), 0);
    let sites = [maps::sites_of(WIDE.name()), maps::sites_of(ODD.name())].concat();
    assert!(sites.len() >= 2);
    // After one batch, and after two.
    for generation in 1..=2 {
        set(generation).expect("every thread can trap");
        for site in &sites {
            assert_eq!(trap(site + 1), (*site, false), "back to the site");
            // Not behind the first byte of a site: not ours.
            assert_eq!(trap(*site), (*site, true));
            assert_eq!(trap(site + 2), (site + 2, true));
        }
        let elsewhere = handler_is_called as fn() as usize + 1;
        assert_eq!(trap(elsewhere), (elsewhere, true));
        assert_eq!(trap(0), (0, true));
        assert_eq!(trap(1), (1, true));
        assert_eq!(read(), (scatter_wide(generation), generation % 2 == 1));
    }
    // A breakpoint that somebody else put on a site while no batch is under way is his.
    for site in &sites {
        // SAFETY: inside the site.
        let original = unsafe { maps::code(*site, 1) }[0];
        // SAFETY: this is the only thread, and it does not run the site meanwhile.
        unsafe { maps::overwrite(*site, &[0xcc]) };
        assert_eq!(trap(site + 1), (site + 1, true));
        assert!(matches!(set(3), Err(Error::Site { .. })), "and the site is not overwritten");
        // SAFETY: as above.
        assert_eq!(unsafe { maps::code(*site, 1) }, [0xcc]);
        // SAFETY: as above.
        unsafe { maps::overwrite(*site, &[original]) };
    }
    set(3).expect("repaired");
    assert_eq!(read(), (scatter_wide(3), true));
}

#[test]
fn held_threads_run_on_with_right_values() {
    child::succeed("threads_are_held", &[]);
}

#[test]
fn a_late_trap_goes_back_to_its_site() {
    child::succeed("handler_is_called", &[]);
}
