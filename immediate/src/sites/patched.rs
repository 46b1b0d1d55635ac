//! Sites: the templates of the target, with the variable's built-in value.

/// A value site, or a load where the value is wider than an instruction holds.
#[doc(hidden)]
#[macro_export]
macro_rules! __patched_value {
    ($variable:ident) => {
        if const { $crate::__private::has_sites::<$variable>() } {
            $crate::__private::decode::<$variable>($crate::__private::arch::isa::imp::value_site!(
                $crate::__private::enter,
                $crate::__private::leave,
                $variable,
                $crate::__private::size::<$variable>(),
                $crate::__private::built_in::<$variable>()
            ))
        } else {
            $crate::__private::load::<$variable>(&$variable)
        }
    };
}

/// A branch site of a `bool`. `$kind` is the outcome for which the branch is taken: 1 for true, 2
/// for false; `$label` is the value of the expression when it is taken.
#[doc(hidden)]
#[macro_export]
macro_rules! __patched_branch {
    ($variable:ident, $kind:literal, $label:literal) => {{
        $crate::__private::require_bool::<$variable>();
        'site: {
            $crate::__private::arch::isa::imp::branch_site!(
                $crate::__private::enter,
                $crate::__private::leave,
                $variable,
                $kind,
                $crate::__private::is_built_taken::<$variable>($kind),
                {
                    $crate::__private::on_taken!();
                    break 'site $label;
                }
            );
            !$label
        }
    }};
}

/// A branch site of a comparison: in the records where the type's bits decide it, else by a test.
#[doc(hidden)]
#[macro_export]
macro_rules! __patched_comparison {
    ($variable:ident, $kind:literal, $label:literal, $operator:ident, $symbol:tt, $constant:expr) => {
        if const { $crate::__private::compares_by_bits::<$variable>() } {
            'site: {
                $crate::__private::arch::isa::imp::comparison_site!(
                    $crate::__private::enter,
                    $crate::__private::leave,
                    $variable,
                    $kind,
                    $crate::__private::is_comparison_built_taken::<$variable>(
                        $kind,
                        $crate::__private::Operator::$operator,
                        $constant
                    ),
                    $crate::__private::Operator::$operator as u32,
                    $crate::__private::constant::<$variable>($constant),
                    {
                        $crate::__private::on_taken!();
                        break 'site $label
                    }
                );
                !$label
            }
        } else {
            $crate::__patched_test!($variable, $kind, $label, |value| value $symbol const { $constant })
        }
    };
}

/// A branch site with a test of its own. The test is a closure that captures nothing; the inner
/// function names its type, so that the site can refer to its code.
#[doc(hidden)]
#[macro_export]
macro_rules! __patched_test {
    ($variable:ident, $kind:literal, $label:literal, $test:expr) => {{
        #[inline(always)]
        fn site<F>(test: F) -> ::core::primitive::bool
        where
            F: ::core::ops::Fn($crate::__private::Value<$variable>) -> ::core::primitive::bool
                + ::core::marker::Copy,
        {
            if const { !$crate::__private::has_sites::<$variable>() } {
                return test($crate::__private::load::<$variable>(&$variable));
            }
            'site: {
                $crate::__private::arch::isa::imp::test_site!(
                    $crate::__private::enter,
                    $crate::__private::leave,
                    $variable,
                    $kind,
                    $crate::__private::evaluate::<$variable, F>,
                    {
                        $crate::__private::on_taken!();
                        break 'site $label;
                    }
                );
                !$label
            }
        }
        let test = $crate::__private::test::<$variable, _>($test);
        // A test that captures is refused here: it could not be evaluated when the variable is set.
        let _: fn($crate::__private::Value<$variable>) -> ::core::primitive::bool = test;
        site(test)
    }};
}
