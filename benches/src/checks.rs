//! A program with a thousand checks, between as much other code as lies between the checks of a
//! program: what it costs in the file and in the compiler.

/// Ten functions `hundred`, which differ in a constant, with a hundred times `$check` each, and a
/// `main` that calls them, after `$before` if there is such. The check may use the numbers that it names.
#[macro_export]
macro_rules! thousand_checks {
    (|$number:ident, $other:ident| $check:block $(, $before:expr)?) => {
        /// The number as it is, out of sight of the compiler: it folds nothing across.
        #[inline(always)]
        fn seen(mut number: u64) -> u64 {
            // SAFETY: no instruction at all.
            unsafe {
                std::arch::asm!(
                    "/* {0} */",
                    inout(reg) number,
                    options(nomem, nostack, preserves_flags),
                );
            }
            number
        }

        #[inline(never)]
        fn hundred<const N: u64>(mut $number: u64, $other: u64) -> u64 {
            // Instructions of different lengths, so that the sites lie as they fall.
            $crate::ten! {
                $number = seen($number ^ N);
                $check
                $number = seen($number.wrapping_mul($other));
                $check
                $number = seen($number.rotate_left(7));
                $check
                $number = seen($number ^ ($number >> 13));
                $check
                $number = seen($number.wrapping_add(0x1234_5678 + N));
                $check
                $number = seen(!$number);
                $check
                $number = seen($number.wrapping_mul(N + 2));
                $check
                $number = seen($number.swap_bytes());
                $check
                $number = seen($number ^ 0x7654_3210);
                $check
                $number = seen($number.wrapping_mul(0x9e37 + N));
                $check
            }
            $number
        }

        fn main() {
            $($before;)?
            let number = std::hint::black_box(1);
            let number = hundred::<1>(number, 3) ^ hundred::<3>(number, 5);
            let number = hundred::<5>(number, 7) ^ hundred::<7>(number, 9);
            let number = hundred::<9>(number, 11) ^ hundred::<11>(number, 13);
            let number = hundred::<13>(number, 15) ^ hundred::<15>(number, 17);
            println!("{}", hundred::<17>(number, 19) ^ hundred::<19>(number, 21));
        }
    };
}

/// Statements, a hundred times.
#[macro_export]
macro_rules! hundred {
    ($($statements:tt)*) => { $crate::ten! { $crate::ten! { $($statements)* } } };
}

/// Statements, ten times.
#[macro_export]
macro_rules! ten {
    ($($statements:tt)*) => {
        $($statements)* $($statements)* $($statements)* $($statements)* $($statements)*
        $($statements)* $($statements)* $($statements)* $($statements)* $($statements)*
    };
}
