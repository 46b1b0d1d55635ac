//! CASE 25 (gz-plugin #102, ceph #14304): two plugins are loaded and unloaded again and again while
//! threads set, set many, list, and run the plugins' sites between load and unload. Where a plugin's
//! code was, other memory is mapped, which nobody may write.
//!
//! What would go wrong: a set that writes a site of a module that is gone, into whatever lies there
//! now; a trap in code that is unmapped; a listing that follows a table that is unmapped; a deadlock
//! with the loader; a leak with every load.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::path::PathBuf;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use immediate::{Batch, Immediate, immediate, immediate_read};
use immediate_tests::child;
use immediate_tests::library::Library;
use support::{Build, fixture, has_sites};

/// Cycles, as long as they take no longer than the time below.
const CYCLES: usize = 10_000;
const TIME: Duration = Duration::from_secs(50);

#[immediate(shared, name = "app.limit")]
static LIMIT: Immediate<u32> = Immediate::new(6);
#[immediate(shared, name = "app.trace")]
static TRACE: Immediate<bool> = Immediate::new(false);

immediate_tests::scenarios!(cycles);

type Read = extern "C" fn() -> u64;

/// A page where the code of a plugin was, filled with a pattern.
struct Page(*mut u8);

const PAGE: usize = 4096;
const PATTERN: u8 = 0x5a;

#[allow(unsafe_code)]
impl Page {
    /// None if something else is there already.
    fn map(address: usize) -> Option<Self> {
        let start = address & !(PAGE - 1);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: maps a page where there is none, and fills it.
        unsafe {
            let page = libc::mmap(start as *mut _, PAGE, protection, flags, -1, 0);
            if page == libc::MAP_FAILED {
                return None;
            }
            if page as usize != start {
                libc::munmap(page, PAGE);
                return None;
            }
            std::ptr::write_bytes(page.cast::<u8>(), PATTERN, PAGE);
            Some(Page(page.cast()))
        }
    }

    fn check_and_unmap(self) {
        // SAFETY: our own page.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.0, PAGE);
            assert!(bytes.iter().all(|byte| *byte == PATTERN), "somebody wrote freed code");
            libc::munmap(self.0.cast(), PAGE);
        }
    }
}

/// What a read gives for these values.
fn is_right(read: u64) -> bool {
    [6, 8, 10, 1006, 1008, 1010].contains(&read)
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    text.split(' ').nth(1).expect("the second number").parse().expect("pages")
}

fn cycles() {
    let [first, second] = ["PLUGIN", "SECOND"]
        .map(|name| PathBuf::from(std::env::var_os(name).expect("the parent names the plugin")));
    let is_over = AtomicBool::new(false);
    let loaded: RwLock<Vec<Read>> = RwLock::new(Vec::new());
    let [sets, batches, lists, runs] = [const { AtomicU64::new(0) }; 4];
    let forever = |count: &'static str, counter: &AtomicU64, work: &dyn Fn()| {
        while !is_over.load(Ordering::Relaxed) {
            work();
            counter.fetch_add(1, Ordering::Relaxed);
        }
        println!("{} {count}", counter.load(Ordering::Relaxed));
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            forever("sets", &sets, &|| {
                LIMIT.set(8).expect("set");
                LIMIT.set(6).expect("set");
                thread::yield_now();
            });
        });
        scope.spawn(|| {
            forever("batches", &batches, &|| {
                Batch::new().set(&LIMIT, 10).set(&TRACE, true).apply().expect("set");
                Batch::new().set(&LIMIT, 6).set(&TRACE, false).apply().expect("set");
                thread::yield_now();
            });
        });
        scope.spawn(|| {
            forever("lists", &lists, &|| {
                let names = immediate::variables().filter(|one| one.name() == "app.limit").count();
                assert_eq!(names, 1);
                for site in immediate::sites() {
                    assert_ne!(site.address, site.base);
                }
                assert!(immediate::modules().count() <= 3);
                thread::yield_now();
            });
        });
        scope.spawn(|| {
            forever("runs", &runs, &|| {
                for read in &*loaded.read().expect("nobody panics with it") {
                    for _ in 0..20 {
                        let value = read();
                        assert!(is_right(value), "{value}");
                    }
                }
                thread::yield_now();
            });
        });
        let (begin, mut done, mut untouched, mut before) = (Instant::now(), 0, 0, 0);
        let mut pages: Vec<Page> = Vec::new();
        while done < CYCLES && begin.elapsed() < TIME {
            let mut plugins: Vec<Library> =
                if done % 2 == 0 { vec![&first, &second] } else { vec![&second, &first] }
                    .into_iter()
                    .map(|path| Library::load(path).expect("loads"))
                    .collect();
            for plugin in &plugins {
                assert!(is_right(plugin.call("seen")), "{}", plugin.call("seen"));
            }
            *loaded.write().expect("nobody panics with it") =
                plugins.iter().map(|plugin| plugin.function("read")).collect();
            assert!(plugins[done % 2].succeeds("set", 8), "a plugin sets as well");
            if done % 3 == 0 {
                thread::yield_now();
            }
            loaded.write().expect("nobody panics with it").clear();
            if done % 5 < 2 {
                plugins.reverse();
            }
            let code: Vec<usize> = plugins.iter().map(|one| one.address("read")).collect();
            plugins.into_iter().for_each(Library::unload);
            pages.extend(code.into_iter().filter_map(Page::map));
            // What sets do meanwhile, they do beside this.
            LIMIT.set(10).expect("set");
            untouched += pages.len();
            pages.drain(..).for_each(Page::check_and_unmap);
            done += 1;
            if done == 500 {
                before = resident();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        println!("{done} cycles of two plugins in {:.1} s", begin.elapsed().as_secs_f64());
        println!("{untouched} pages where code was stayed untouched");
        assert!(untouched >= done, "pages were mapped where code was");
        if before > 0 {
            let grown = resident().saturating_sub(before) * PAGE / 1024;
            println!("{grown} KiB grown since cycle 500");
            assert!(grown < 4096, "what a load allocates, the unload frees");
        }
    });
    LIMIT.set(8).expect("set");
    assert_eq!(immediate_read!(LIMIT), 8);
    assert_eq!((immediate::modules().count(), immediate::variables().count()), (1, 2));
}

#[test]
fn plugins_come_and_go_while_everything_is_used() {
    if !has_sites() {
        return;
    }
    let build = |name: &str| {
        let case = format!("cycles/{name}");
        let build = Build::new(&case, &fixture("shared_plugin.rs")).crate_type("cdylib");
        build.flags("-Copt-level=2 -Cstrip=symbols").build().expect("builds")
    };
    let (first, second) = (build("first"), build("second"));
    child::succeed(
        "cycles",
        &[("PLUGIN", first.to_str().expect("UTF-8")), ("SECOND", second.to_str().expect("UTF-8"))],
    );
}
