//! Pressure on the caches: what a program does between two calls of the code that is measured.
//!
//! # Invariants
//!
//! * `P1` The code of [`Code`] is whole before it is made executable, and never changes afterwards.

#![allow(unsafe_code)]

use std::hint::black_box;

use crate::mixed;
use crate::processors::{Caches, LINE};

/// Data twice as large as the first and the second level together.
#[derive(Debug)]
pub struct Data {
    bytes: Vec<u8>,
}

impl Data {
    /// For these caches.
    #[must_use]
    pub fn new(caches: Caches) -> Self {
        Data { bytes: vec![1; (2 * (caches.first + caches.second)).next_power_of_two()] }
    }

    /// Reads every line in order.
    pub fn linear(&self) {
        let sum = self.bytes.iter().step_by(LINE).fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        black_box(sum);
    }

    /// Reads as many lines, each one chosen by chance.
    pub fn random(&self) {
        let mask = self.bytes.len() - 1;
        let (mut number, mut sum) = (1, 0_u8);
        for _ in 0..self.bytes.len() / LINE {
            number = mixed::next(number);
            sum = sum.wrapping_add(self.bytes[(number >> 32) as usize & mask & !(LINE - 1)]);
        }
        black_box(sum);
    }
}

/// Code twice as large as the second level, with one jump in each line.
#[derive(Debug)]
pub struct Code {
    start: *const u8,
    bytes: usize,
}

impl Code {
    /// `None` where no memory may be made executable, and on processors other than x86.
    #[must_use]
    pub fn new(caches: Caches) -> Option<Self> {
        if !cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
            return None;
        }
        let bytes = 2 * caches.second;
        // SAFETY: a new mapping, of which nobody else knows; P1.
        unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if start == libc::MAP_FAILED {
                return None;
            }
            let code = std::slice::from_raw_parts_mut(start.cast::<u8>(), bytes);
            for line in code.chunks_exact_mut(LINE) {
                // `jmp` to the next line.
                line[..2].copy_from_slice(&[0xeb, LINE as u8 - 2]);
            }
            // `ret` in the last.
            code[bytes - LINE] = 0xc3;
            let code = Code { start: start.cast(), bytes };
            (libc::mprotect(start, bytes, libc::PROT_READ | libc::PROT_EXEC) == 0).then_some(code)
        }
    }

    /// Runs it.
    pub fn run(&self) {
        // SAFETY: P1; a function that takes nothing, gives nothing and touches no register.
        unsafe { std::mem::transmute::<*const u8, extern "C" fn()>(self.start)() }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody runs it any more.
        unsafe { libc::munmap(self.start.cast_mut().cast(), self.bytes) };
    }
}
