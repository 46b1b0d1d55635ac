//! Guarantee 4: a set or a batch that returns an error changed nothing, and the error says why.
//!
//! Refused here: a site whose bytes are not what its record says (CASES 21; LKML, October 2019), a
//! set while this thread holds the lock, `set_early` with two threads. What would go wrong: half a
//! batch, a backing value that differs from the sites, text that stays writable.

#![allow(unsafe_code)]

use immediate::{Batch, Error, Immediate, immediate, immediate_if, immediate_read};
use immediate_tests::scatter::Wide;
use immediate_tests::{child, maps};

#[immediate]
static BEFORE: Immediate<u32> = Immediate::new(10);
#[immediate]
static VICTIM: Immediate<Wide> = Immediate::new(20);
#[immediate]
static SWITCH: Immediate<bool> = Immediate::new(false);
#[immediate]
static AFTER: Immediate<u8> = Immediate::new(30);
/// Read only by `get`.
#[immediate]
static WITHOUT_SITES: Immediate<i64> = Immediate::new(40);

type Values = (u32, Wide, bool, u8, i64);

const OLD: Values = (10, 20, false, 30, 40);
const NEW: Values = (11, 21, true, 31, 41);

#[inline(never)]
fn read() -> Values {
    let switch = if immediate_if!(SWITCH) { true } else { AFTER.name().is_empty() };
    (
        immediate_read!(BEFORE),
        immediate_read!(VICTIM),
        switch,
        immediate_read!(AFTER),
        WITHOUT_SITES.get(),
    )
}

fn backing() -> Values {
    (BEFORE.get(), VICTIM.get(), SWITCH.get(), AFTER.get(), WITHOUT_SITES.get())
}

fn batch(values: Values) -> Batch<'static> {
    Batch::new()
        .set(&WITHOUT_SITES, values.4)
        .set(&BEFORE, values.0)
        .set(&VICTIM, values.1)
        .set(&SWITCH, values.2)
        .set(&AFTER, values.3)
}

// Places in a site, and what is wrong there: the opcode (behind the prefix, if any), then bytes of the
// immediate; the opcode of the branch, then of a displacement; the opcode of a narrow move.
cfg_select! {
    target_arch = "x86" => {
        const SPOIL_VALUE: &[(usize, u8)] = &[(0, 0x40), (1, 0x01), (4, 0x80)];
        const SPOIL_BRANCH: &[(usize, u8)] = &[(0, 0x10), (4, 0x01)];
        const SPOIL_BYTE: &[(usize, u8)] = &[(0, 0x08)];
    }
    _ => {
        const SPOIL_VALUE: &[(usize, u8)] = &[(1, 0x40), (2, 0x01), (9, 0x80)];
        const SPOIL_BRANCH: &[(usize, u8)] = &[(0, 0x10), (4, 0x01)];
        const SPOIL_BYTE: &[(usize, u8)] = &[(0, 0x08)];
    }
}

/// The code of every site of this program.
fn all_code() -> Vec<(usize, Vec<u8>)> {
    let sites = immediate::sites();
    // SAFETY: a site is at least five bytes of loaded text.
    sites.map(|site| (site.address, unsafe { maps::code(site.address, 5) })).collect()
}

/// What stands at the sites of `variable` is spoilt byte by byte; each time the batch is refused.
fn refuses_spoilt_sites(variable: &'static str, spoil: &[(usize, u8)]) {
    for site in maps::sites_of(variable) {
        for &(at, flip) in spoil {
            let place = site + at;
            // SAFETY: inside the site.
            let original = unsafe { maps::code(place, 1) }[0];
            // SAFETY: no other thread runs the sites, and this one does not before the repair.
            unsafe { maps::overwrite(place, &[original ^ flip]) };
            let spoilt = all_code();
            let updates = immediate::status().updates;
            let error = batch(NEW).apply().expect_err("the site is not what its record says");
            let Error::Site { variable: named, mismatch } = &error else { panic!("{error}") };
            assert_eq!(*named, variable);
            assert_eq!(mismatch.address, site);
            let text = error.to_string();
            assert!(text.contains(variable) && !text.contains('\n'), "{text}");
            assert_eq!(all_code(), spoilt, "no site was written");
            assert_eq!(backing(), OLD);
            assert_eq!(immediate::status().updates, updates);
            maps::assert_text_is_read_only(site);
            // SAFETY: as above.
            unsafe { maps::overwrite(place, &[original]) };
            assert_eq!(read(), OLD);
        }
    }
    batch(NEW).apply().expect("repaired");
    assert_eq!((read(), backing()), (NEW, NEW));
    batch(OLD).apply().expect("repaired");
    assert_eq!((read(), backing()), (OLD, OLD));
}

fn refuses_within_the_lock() {
    let guard = immediate::lock();
    assert_eq!(VICTIM.set(99), Err(Error::WithinUpdate));
    assert_eq!(VICTIM.set_early(99), Err(Error::WithinUpdate));
    assert_eq!(batch(NEW).apply(), Err(Error::WithinUpdate));
    assert_eq!((read(), backing()), (OLD, OLD));
    guard.apply(batch(NEW)).expect("through the guard");
    assert_eq!((read(), backing()), (NEW, NEW));
    guard.set(&VICTIM, 22).expect("through the guard");
    assert_eq!(read().1, 22);
    guard.apply(batch(OLD)).expect("through the guard");
    drop(guard);
    assert_eq!((read(), backing()), (OLD, OLD));
}

fn refuses_to_be_early() {
    // The harness's thread and this one.
    assert_eq!(VICTIM.set_early(99), Err(Error::NotSingleThreaded));
    assert_eq!(WITHOUT_SITES.set_early(99), Err(Error::NotSingleThreaded));
    assert_eq!((read(), backing()), (OLD, OLD));
}

immediate_tests::scenarios!(is_early);

/// With one thread `set_early` works; with a second it is refused.
fn is_early() {
    assert_eq!(maps::threads(), 1);
    VICTIM.set_early(21).expect("one thread");
    assert_eq!((read().1, VICTIM.get()), (21, 21));
    std::thread::scope(|scope| {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || held.recv());
        assert_eq!(VICTIM.set_early(22), Err(Error::NotSingleThreaded));
        assert_eq!((read().1, VICTIM.get()), (21, 21));
        drop(hold);
    });
}

#[test]
fn an_error_changes_nothing() {
    child::succeed("is_early", &[]);
    assert_eq!((read(), backing()), (OLD, OLD));
    refuses_to_be_early();
    refuses_within_the_lock();
    if immediate_tests::has_sites() {
        let text = maps::sites_of(VICTIM.name())[0];
        maps::assert_text_is_read_only(text);
        refuses_spoilt_sites(VICTIM.name(), SPOIL_VALUE);
        refuses_spoilt_sites(SWITCH.name(), SPOIL_BRANCH);
        // The last in the batch: others had been looked at before.
        refuses_spoilt_sites(AFTER.name(), SPOIL_BYTE);
        maps::assert_text_is_read_only(text);
    }
}
