//! No sites: every read is a plain load of the backing value.

/// A load.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_value {
    ($variable:ident) => {
        $crate::__private::load::<$variable>(&$variable)
    };
}

/// A load and a branch.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_branch {
    ($variable:ident, $kind:literal, $label:literal) => {{
        $crate::__private::require_bool::<$variable>();
        $crate::__private::load::<$variable>(&$variable) == (($kind == 1) == $label)
    }};
}

/// A load and a comparison.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_comparison {
    ($variable:ident, $kind:literal, $label:literal, $operator:ident, $symbol:tt, $constant:expr) => {
        $crate::__plain_test!($variable, $kind, $label, |value| value $symbol const { $constant })
    };
}

/// A load and a test.
#[doc(hidden)]
#[macro_export]
macro_rules! __plain_test {
    ($variable:ident, $kind:literal, $label:literal, $test:expr) => {{
        let test = $crate::__private::test::<$variable, _>($test);
        let _: fn($crate::__private::Value<$variable>) -> ::core::primitive::bool = test;
        test($crate::__private::load::<$variable>(&$variable)) == (($kind == 1) == $label)
    }};
}
