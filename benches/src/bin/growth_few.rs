//! One site, and no others: the twin of `growth_million`.

#![allow(unsafe_code)]

use immediate_benches::{one_site, worker};

// Two pages of code before the site, so that it lies inside the text as in the twin and not on its
// first page: the kernel has less to do for a page at the end of a mapping.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
std::arch::global_asm!(
    ".pushsection .text.million,\"axR\",@progbits",
    ".fill 8192, 1, 0x90",
    ".popsection",
);

fn main() -> std::io::Result<()> {
    match worker::role() {
        Some(role) => one_site::serve(&role),
        None => {
            println!("run by the benchmark `growth`: cargo bench -p immediate-benches");
            Ok(())
        }
    }
}
