//! One site, and 1,000,000 others of another variable: the twin of `growth_few`.
//!
//! The others are emitted by the assembler in one go, with the bytes and the records that the
//! template of a value site has (`immediate_arch::isa::x86_64`): a million expansions of a macro
//! would keep the compiler busy for minutes.

#![allow(unsafe_code)]

use immediate::{Immediate, immediate, immediate_read};
use immediate_benches::{one_site, worker};

/// The variable of the others.
#[immediate]
static OTHER: Immediate<u32> = Immediate::new(7);

/// Emits the others; runs none of them.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching)))]
fn emit() {
    // SAFETY: data and code in sections of their own; nothing stands where the function runs.
    unsafe {
        std::arch::asm!(
            ".pushsection .text.million,\"axR\",@progbits",
            ".p2align 3",
            "22:",
            ".rept 1000000",
            "mov eax, 7",
            ".byte 0x0f, 0x1f, 0x00",
            ".endr",
            ".popsection",
            ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
            ".balign 4",
            "23:",
            ".set immediate_benches_million, 0",
            ".rept 1000000",
            ".long 22b + 8 * immediate_benches_million - .",
            ".long {variable}@GOTPCREL",
            ".long 0",
            ".set immediate_benches_million, immediate_benches_million + 1",
            ".endr",
            ".popsection",
            variable = sym OTHER,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// No sites here.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching))))]
fn emit() {}

fn main() -> std::io::Result<()> {
    emit();
    match worker::role() {
        Some(role) => {
            assert_eq!(immediate_read!(OTHER), 7);
            one_site::serve(&role)
        }
        None => {
            println!("run by the benchmark `growth`: cargo bench -p immediate-benches");
            println!("{} sites of one variable", OTHER.site_count());
            Ok(())
        }
    }
}
