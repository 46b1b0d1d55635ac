//! Functions that the kernel maps into every process (`vdso(7)`), found by name.
//!
//! The vDSO is an ELF object in memory; the auxiliary vector tells where.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::{ptr, slice};

cfg_select! {
    target_pointer_width = "64" => {
        use libc::{Elf64_Ehdr as FileHeader, Elf64_Phdr as ProgramHeader, Elf64_Sym as Symbol};
    }
    _ => {
        use libc::{Elf32_Ehdr as FileHeader, Elf32_Phdr as ProgramHeader, Elf32_Sym as Symbol};
    }
}

const DT_HASH: usize = 4;
const DT_STRTAB: usize = 5;
const DT_SYMTAB: usize = 6;
const DT_GNU_HASH: usize = 0x6fff_fef5;

/// The address of a symbol; `None` where there is no vDSO or it has no such symbol.
pub(super) fn find(name: &[u8]) -> Option<usize> {
    // SAFETY: reads a number that the kernel gave the process.
    let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if start == 0 {
        return None;
    }
    // SAFETY: the kernel's own object, mapped as a whole for as long as the process lives; its tables lie
    // where its headers say.
    unsafe {
        let header = &*(start as *const FileHeader);
        let headers = (start + header.e_phoff as usize) as *const ProgramHeader;
        let headers = slice::from_raw_parts(headers, usize::from(header.e_phnum));
        let loaded = headers.iter().find(|header| header.p_type == libc::PT_LOAD)?;
        let bias = start.wrapping_sub(loaded.p_vaddr as usize - loaded.p_offset as usize);
        let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let (mut symbols, mut names, mut hash, mut gnu_hash) = (None, None, None, None);
        let mut entry = bias.wrapping_add(dynamic.p_vaddr as usize) as *const [usize; 2];
        loop {
            let [tag, value] = ptr::read(entry);
            let address = Some(bias.wrapping_add(value));
            match tag {
                0 => break,
                DT_SYMTAB => symbols = address,
                DT_STRTAB => names = address,
                DT_HASH => hash = address,
                DT_GNU_HASH => gnu_hash = address,
                _ => {}
            }
            entry = entry.add(1);
        }
        let count = match hash {
            // The length of the chains is the number of symbols.
            Some(hash) => *(hash as *const u32).add(1) as usize,
            None => count_by_gnu_hash(gnu_hash?),
        };
        let symbols = slice::from_raw_parts(symbols? as *const Symbol, count);
        let found = symbols.iter().find(|symbol| {
            let text = CStr::from_ptr((names.unwrap_or(0) + symbol.st_name as usize) as *const _);
            symbol.st_shndx != 0 && names.is_some() && text.to_bytes() == name
        });
        found.map(|symbol| bias.wrapping_add(symbol.st_value as usize))
    }
}

/// How many symbols there are: one more than the last of the last chain.
///
/// # Safety
///
/// `table` is the address of a table of the kind `DT_GNU_HASH`.
unsafe fn count_by_gnu_hash(table: usize) -> usize {
    // SAFETY: by the caller: four words, a filter of words of the machine, the buckets, the chains.
    unsafe {
        let words = table as *const u32;
        let [buckets, first, filter, _] = ptr::read(words.cast::<[u32; 4]>()).map(|n| n as usize);
        let bucket = words.add(4).byte_add(filter * size_of::<usize>());
        let mut last = (0..buckets).map(|n| *bucket.add(n) as usize).max().unwrap_or(0);
        if last < first {
            return first;
        }
        let chains = bucket.add(buckets);
        while *chains.add(last - first) & 1 == 0 {
            last += 1;
        }
        last + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there_and_nothing_else() {
        assert_eq!(find(b"__no_such_function"), None);
        // SAFETY: reads a number that the kernel gave the process.
        let start = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
        if start == 0 {
            println!("there is no vDSO here");
            return;
        }
        let known = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
            &b"__vdso_clock_gettime"[..]
        } else {
            &b"__kernel_clock_gettime"[..]
        };
        let found = find(known).expect("every vDSO tells the time");
        assert!((start..start + 0x1_0000).contains(&found), "{found:#x} in {start:#x}");
    }
}
