//! Sites in any number, of which the program runs none: the others, when one is measured.
//!
//! They are emitted by the assembler in one go, with the bytes and the records that the template of
//! a value site has (`immediate_arch::isa::x86_64`): a million expansions of a macro would keep the
//! compiler busy for minutes.

/// Declares a variable `OTHER`, which is 7, and a function `emit` that makes `$count` sites of it
/// and runs none. Two pages of code come first, so that the sites of the program lie inside its text
/// and not on the first page: the kernel has less to do for a page at the end of a mapping.
#[macro_export]
macro_rules! others {
    ($count:literal) => {
        /// The variable of the others.
        #[immediate::immediate]
        static OTHER: immediate::Immediate<u32> = immediate::Immediate::new(7);

        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching)))]
        fn emit() {
            // SAFETY: data and code in sections of their own; nothing stands where it runs.
            unsafe {
                std::arch::asm!(
                    ".pushsection .text.others,\"axR\",@progbits",
                    ".fill 8192, 1, 0x90",
                    "22:",
                    ".rept {count}",
                    "mov eax, 7",
                    ".byte 0x0f, 0x1f, 0x00",
                    ".endr",
                    ".popsection",
                    ".pushsection immediate_sites_0_1_0,\"aR\",@progbits",
                    ".balign 4",
                    ".set immediate_benches_others, 0",
                    ".rept {count}",
                    ".long 22b + 8 * immediate_benches_others - .",
                    ".long {variable}@GOTPCREL",
                    ".long 0",
                    ".set immediate_benches_others, immediate_benches_others + 1",
                    ".endr",
                    ".popsection",
                    count = const $count,
                    variable = sym OTHER,
                    options(nomem, nostack, preserves_flags),
                );
            }
        }

        /// No sites here.
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(immediate_no_patching))))]
        fn emit() {}
    };
}

/// A program that has so many others, and serves as [`one_site`](crate::one_site).
#[macro_export]
macro_rules! growth_program {
    ($count:literal) => {
        $crate::others!($count);

        fn main() -> std::io::Result<()> {
            emit();
            match $crate::worker::role() {
                Some(role) => {
                    assert_eq!(immediate::immediate_read!(OTHER), 7);
                    $crate::one_site::serve(&role)
                }
                None => {
                    println!("run by the benchmark `growth` and by `report`");
                    println!("{} sites of one variable", OTHER.site_count());
                    Ok(())
                }
            }
        }
    };
}
