//! What every test of an environment does once it is set up: threads read while variables are set,
//! and whatever becomes of a set, it is whole, and as `status()` had said.

#![allow(dead_code)] // each of the programs uses its part

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use immediate::{Batch, Error, Immediate, Protocol, Writer};
use immediate::{immediate, immediate_if, immediate_read};
use immediate_tests::scatter::{gather64, scatter64};

#[immediate]
static WIDE: Immediate<u64> = Immediate::new(0);
#[immediate]
static NARROW: Immediate<u16> = Immediate::new(0);
#[immediate]
static ODD: Immediate<bool> = Immediate::new(false);
#[immediate]
static LEVEL: Immediate<u8> = Immediate::new(0);

/// What the sites say: the wide one twice, at its two places.
type Values = (u64, u64, u16, bool, bool);

/// One read of every site.
#[inline(never)]
pub(crate) fn read() -> Values {
    let first = immediate_read!(WIDE);
    let others = (immediate_read!(NARROW), immediate_if!(ODD), immediate_if!(LEVEL >= 4));
    // The same value again would be the same instruction to the compiler's mind; a site never is.
    (first, immediate_read!(WIDE), others.0, others.1, others.2)
}

fn values(generation: u64) -> Values {
    let wide = scatter64(generation);
    (wide, wide, generation as u16, generation % 2 == 1, generation % 8 >= 4)
}

/// Sets all of the variables, more sites than `procmem` is the first choice for.
pub(crate) fn set(generation: u64) -> Result<(), Error> {
    Batch::new()
        .set(&WIDE, scatter64(generation))
        .set(&NARROW, generation as u16)
        .set(&ODD, generation % 2 == 1)
        .set(&LEVEL, (generation % 8) as u8)
        .apply()
}

/// Every site and every listed value is of this generation.
#[track_caller]
pub(crate) fn assert_all(generation: u64) {
    assert_eq!(read(), values(generation), "sites, generation {generation}");
    let listed = (WIDE.get(), NARROW.get(), ODD.get(), u64::from(LEVEL.get()));
    let (wide, _, narrow, odd, _) = values(generation);
    assert_eq!(listed, (wide, narrow, odd, generation % 8), "listed, generation {generation}");
}

/// Reads and checks, as the readers do; holds the last generation of each site.
pub(crate) struct Reader([u64; 2]);

impl Reader {
    /// Has seen nothing yet.
    pub(crate) fn new() -> Self {
        Reader([0; 2])
    }

    /// One look at each site.
    pub(crate) fn look(&mut self) {
        let (first, second, ..) = read();
        for (wide, last) in [first, second].into_iter().zip(&mut self.0) {
            let generation = gather64(wide).expect("no mixture");
            assert!(generation >= *last, "{generation} after {last}");
            *last = generation;
        }
    }
}

/// How sets went.
#[derive(Debug, Default)]
pub(crate) struct Went {
    /// Those that succeeded.
    pub(crate) done: u64,
    /// Those that were refused.
    pub(crate) refused: u64,
    /// Why, the last of them.
    pub(crate) error: Option<String>,
    /// The protocols that were used, each once.
    pub(crate) protocols: Vec<Protocol>,
    /// The writers that were used, each once.
    pub(crate) writers: Vec<Writer>,
}

/// Sets so often, each time all variables or one of them, and looks at everything after each.
pub(crate) fn sets(generation: &mut u64, times: u64) -> Went {
    let mut went = Went::default();
    for _ in 0..times {
        let next = *generation + 1;
        match set(next) {
            Ok(()) => {
                *generation = next;
                went.done += 1;
                if let Some(last) = immediate::status().last {
                    went.protocols.push(last.protocol);
                    went.writers.push(last.writer);
                }
            }
            Err(error @ Error::Refused(_)) => {
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
                went.refused += 1;
                went.error = Some(error.to_string());
            }
            Err(error) => panic!("{error}"),
        }
        assert_all(*generation);
    }
    went.protocols.sort_by_key(|one| one.name());
    went.protocols.dedup();
    went.writers.sort_by_key(|one| one.name());
    went.writers.dedup();
    println!("{} sets done by {:?} and {:?}", went.done, went.protocols, went.writers);
    if let Some(error) = &went.error {
        println!("{} refused: {error}", went.refused);
    }
    went
}

/// Runs `body` while so many threads read; every one of them reads before and after.
pub(crate) fn among_readers<T>(readers: usize, body: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    let stop = AtomicBool::new(false);
    let ready = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // Also when the body panics.
        let _stop = Stop(&stop);
        for _ in 0..readers {
            scope.spawn(|| {
                let mut reader = Reader::new();
                reader.look();
                ready.fetch_add(1, SeqCst);
                while !stop.load(SeqCst) {
                    for _ in 0..100 {
                        reader.look();
                    }
                    std::thread::yield_now();
                }
                reader.look();
            });
        }
        while ready.load(SeqCst) < readers as u64 {
            std::thread::yield_now();
        }
        body()
    })
}

/// Sets among two readers; the first set is carried out, or refused, as `status()` says before.
pub(crate) fn sets_as_foreseen(generation: &mut u64, times: u64) -> Went {
    among_readers(2, || {
        let before = immediate::status();
        println!("{before}\n");
        let first = sets(generation, 1);
        if immediate_tests::has_sites() {
            assert_eq!(before.refusal.is_none(), first.done == 1, "{before}\n{first:?}");
            if let Some(protocol) = before.protocol {
                assert_eq!(first.protocols, [protocol], "{before}\n{first:?}");
            }
            if let Some(refusal) = &before.refusal {
                assert_eq!(Some(refusal.to_string()), first.error);
            }
            let unusable =
                |writer: &Writer| before.rejected_writers.iter().any(|one| one.writer == *writer);
            assert!(!first.writers.iter().any(unusable), "{before}\n{first:?}");
        }
        let mut went = sets(generation, times);
        went.done += first.done;
        went.refused += first.refused;
        if immediate_tests::has_sites() {
            // What an environment closes, stays closed.
            assert!(went.done == 0 || went.refused == 0, "{went:?}");
        }
        went
    })
}
