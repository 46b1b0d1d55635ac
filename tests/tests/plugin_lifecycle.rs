//! CASES 5, 24 and 26 (openucx #3517, tcmalloc #120, kpatch #931, rust #59629): modules come and go in
//! all the ways that the loader has.
//!
//! What would go wrong: a deadlock between the loader's lock and ours; a site that is registered
//! twice; a module that is forgotten although it is still mapped; a child of `fork` that inherits a
//! lock.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use immediate::{Immediate, immediate, immediate_read};
use immediate_tests::child;
use immediate_tests::library::Library;
use support::{Build, fixture, has_sites};

#[immediate(shared, name = "app.limit")]
static LIMIT: Immediate<u32> = Immediate::new(5);
#[immediate(shared, name = "app.trace")]
static TRACE: Immediate<bool> = Immediate::new(false);

fn build(name: &str, flags: &str) -> PathBuf {
    let case = format!("lifecycle/{name}");
    let build = Build::new(&case, &fixture("shared_plugin.rs")).crate_type("cdylib");
    build.flags("-Copt-level=2").flags(flags).build().expect("builds")
}

fn plugin() -> PathBuf {
    std::env::var_os("PLUGIN").expect("the parent names the plugin").into()
}

fn load() -> Library {
    Library::load(&plugin()).expect("loads")
}

fn modules() -> usize {
    immediate::modules().count()
}

immediate_tests::scenarios!(
    opened_twice,
    stays,
    constructor_sets,
    loads_inside,
    under_the_guard,
    concurrent,
    forked,
);

/// What `read` of the plugin gives for an even limit below 100, with the trace off.
fn check(plugin: &Library, limit: u32) {
    LIMIT.set(limit).expect("set");
    assert_eq!((plugin.call("read"), plugin.call("get")), (limit.into(), limit.into()));
}

fn opened_twice() {
    let (one, two) = (load(), load());
    assert_eq!(modules(), 2, "one module, however often it is opened");
    let sites = immediate::sites().count();
    check(&one, 8);
    one.unload();
    assert_eq!((modules(), immediate::sites().count()), (2, sites), "it is still mapped");
    check(&two, 10);
    two.unload();
    assert_eq!(modules(), 1);
}

#[test]
fn a_library_that_is_opened_twice_registers_once() {
    if !has_sites() {
        return;
    }
    succeed("opened_twice", "", "plain");
}

fn stays() {
    let path = plugin();
    let one = load();
    // A thread-local with a destructor in this thread, which lives on: the library cannot go.
    assert_eq!(one.call("stay"), 1);
    let read = one.function("read");
    one.unload();
    assert!(Library::is_loaded(&path), "closing it unloads nothing");
    assert_eq!(modules(), 2);
    LIMIT.set(12).expect("set");
    assert_eq!(read(), 12, "sites that are still mapped follow");
    let again = load();
    assert_eq!(modules(), 2, "no site twice");
    let mut addresses: Vec<_> = immediate::sites().map(|site| site.address).collect();
    addresses.sort_unstable();
    assert!(addresses.windows(2).all(|pair| pair[0] != pair[1]));
    check(&again, 14);
    // In a thread that ends, the destructor runs, and then the library may go with the handle that
    // is closed last.
    thread::spawn(move || assert_eq!(again.call("stay"), 1)).join().expect("the thread");
    check(&load(), 16);
}

#[test]
fn a_library_that_closing_does_not_unload_goes_on_following() {
    if !has_sites() {
        return;
    }
    succeed("stays", "--cfg stays", "stays");
}

fn constructor_sets() {
    LIMIT.set(8).expect("set");
    let plugin = load();
    assert_eq!(plugin.call("seen"), 8, "before it set");
    assert_eq!((immediate_read!(LIMIT), LIMIT.get()), (77, 77));
    assert_eq!(plugin.call("read"), 10_077);
    // The guard's holder loads it: its constructor is told instead of waiting for its own thread.
    plugin.unload();
}

#[test]
fn a_constructor_sets_a_variable() {
    if !has_sites() {
        return;
    }
    succeed("constructor_sets", "--cfg sets", "sets");
}

fn loads_inside() {
    LIMIT.set(8).expect("set");
    let outer = load();
    assert_eq!(modules(), 3);
    let inner: PathBuf = std::env::var_os("PLUGIN_INNER").expect("named").into();
    let inner = Library::load(&inner).expect("loads");
    assert_eq!((outer.call("seen"), inner.call("seen")), (8, 8));
    check(&inner, 10);
    check(&outer, 12);
    outer.unload();
    assert_eq!(modules(), 2);
    check(&inner, 14);
}

#[test]
fn a_constructor_loads_another_plugin() {
    if !has_sites() {
        return;
    }
    let inner = build("inner", "");
    let outer = build("loads", "--cfg loads");
    let paths = [outer.to_str().unwrap(), inner.to_str().unwrap()];
    child::succeed("loads_inside", &[("PLUGIN", paths[0]), ("PLUGIN_INNER", paths[1])]);
}

/// A thread holds the guard and asks the loader for something, while a constructor, which runs under
/// the loader's lock, registers: neither may wait for the other.
fn under_the_guard() {
    let path = plugin();
    let guard = immediate::lock();
    // Another thread loads while this one holds the guard.
    let other = thread::spawn(move || Library::load(&path).expect("loads"));
    let plugin = other.join().expect("the constructor did not wait for the guard");
    assert_eq!(plugin.call("seen"), 10_005);
    guard.set(&LIMIT, 8).expect("set");
    assert_eq!(plugin.call("read"), 8, "its sites follow a set under the same guard");
    plugin.unload();
    // And this one itself.
    let plugin = load();
    assert_eq!(plugin.call("seen"), 8);
    guard.set(&LIMIT, 10).expect("set");
    assert_eq!(plugin.call("read"), 10);
    plugin.unload();
    drop(guard);
    LIMIT.set(12).expect("the lock is free again");
}

#[test]
fn a_module_registers_while_somebody_holds_the_guard() {
    if !has_sites() {
        return;
    }
    succeed("under_the_guard", "", "guarded");
}

/// Loads and unloads while others set and list; each load finds a value that was set before it or
/// during it.
fn concurrent() {
    let is_over = AtomicBool::new(false);
    let lowest = std::sync::atomic::AtomicU64::new(0);
    thread::scope(|scope| {
        let lists = scope.spawn(|| {
            let mut lists = 0;
            while !is_over.load(Ordering::Relaxed) {
                let all = immediate::variables().count() + immediate::sites().count();
                assert!(all >= 2);
                lists += modules();
            }
            lists
        });
        let sets = scope.spawn(|| {
            let mut limit = 0;
            while !is_over.load(Ordering::Relaxed) {
                limit += 2;
                LIMIT.set(limit).expect("set");
                lowest.store(limit.into(), Ordering::SeqCst);
            }
            limit / 2
        });
        for _ in 0..200 {
            let before = lowest.load(Ordering::SeqCst);
            let plugin = load();
            let seen = plugin.call("seen");
            // The test `>= 100` adds 100,000.
            let seen = if seen >= 100_000 { seen - 100_000 } else { seen };
            assert!(seen >= before, "{seen} after {before}");
            plugin.unload();
        }
        is_over.store(true, Ordering::Relaxed);
        let (sets, lists) = (sets.join().expect("sets"), lists.join().expect("lists"));
        println!("200 loads, {sets} sets, {lists} modules listed");
    });
    assert_eq!(modules(), 1);
}

#[test]
fn a_plugin_reads_what_was_set_before_it_came_whoever_sets_meanwhile() {
    if !has_sites() {
        return;
    }
    succeed("concurrent", "", "concurrent");
}

#[allow(unsafe_code)]
fn forked() {
    let plugin = load();
    check(&plugin, 8);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // `fork` comes while other threads set and load.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                TRACE.set(true).expect("set");
                TRACE.set(false).expect("set");
            }
        });
        for round in 0..20 {
            // SAFETY: the child only uses what is async-signal-safe, this library and the loader,
            // whose locks the C library keeps whole.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let is_right = LIMIT.set(30).is_ok()
                    && TRACE.set(false).is_ok()
                    && plugin.call("read") == 30
                    && plugin.succeeds("set", 32)
                    && immediate_read!(LIMIT) == 32
                    && modules() == 2;
                // SAFETY: ends the child without running what belongs to the parent.
                unsafe { libc::_exit(i32::from(!is_right)) };
            }
            let mut status = 0;
            // SAFETY: waits for our own child.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0, "round {round}");
            assert_eq!((immediate_read!(LIMIT), plugin.call("get") % 1000), (8, 8));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    plugin.unload();
    assert_eq!(modules(), 1);
}

#[test]
fn a_child_of_fork_sets_in_plugins_too() {
    if !has_sites() {
        return;
    }
    succeed("forked", "", "forked");
}

fn succeed(scenario: &str, flags: &str, name: &str) {
    let plugin = build(name, flags);
    child::succeed(scenario, &[("PLUGIN", plugin.to_str().expect("UTF-8"))]);
}
