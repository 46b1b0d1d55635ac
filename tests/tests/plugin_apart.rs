//! CASE 27 (coreclr #20205, linkme #99): one process with two versions of the library that do not go
//! together.
//!
//! What would go wrong: one of them reads the tables of the other in a layout that it does not know;
//! each takes the trap signal from the other, so that a thread that traps dies, or the two handlers
//! pass a trap to each other without end.

#[path = "../fixtures/support/mod.rs"]
mod support;

use std::process::Command;

use support::{Build, fixture, has_sites};

#[test]
fn two_versions_work_apart_in_both_orders_and_say_so() {
    if !has_sites() {
        return;
    }
    let other = support::other_version();
    let host = Build::new("apart", &fixture("apart.rs")).build().expect("builds");
    let plugin = |case: &str| {
        let build = Build::new(case, &fixture("shared_plugin.rs")).crate_type("cdylib");
        build.flags("-Copt-level=2")
    };
    let ours = plugin("apart/ours").build().expect("builds");
    let theirs = plugin("apart/theirs").library(&other).build().expect("builds");
    for (first, second, later) in [(&ours, &theirs, "0.9.0"), (&theirs, &ours, "0.1.0")] {
        let output = Command::new(&host).args([first, second]).output().expect("runs");
        let (out, said) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}\n{out}{said}", output.status);
        let [line] = said.lines().collect::<Vec<_>>()[..] else { panic!("one line: {said}") };
        // The later one says it, of itself first.
        assert!(line.contains(&format!("{} has version {later}", second.display())), "{line}");
        for part in ["0.1.0", "0.9.0", first.to_str().unwrap()] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(out.trim_end().ends_with("protocols 1 1"), "both go on with traps: {out}");
        println!("{line}\n{out}");
    }
}
