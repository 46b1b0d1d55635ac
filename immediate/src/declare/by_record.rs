//! A record in the module's table of variables.

/// Declares the variable: the function is never called, but kept, and with it the record.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_by_record {
    ($variable:ident) => {
        #[used]
        static __KEEP: fn() = {
            fn keep() {
                $crate::__private::arch::isa::records::variable_record!(
                    $crate::__private::enter,
                    $crate::__private::leave,
                    $variable
                )
            }
            keep
        };
    };
}
