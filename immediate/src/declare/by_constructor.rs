//! A constructor for each variable, on targets without templates.

use crate::lock;
use crate::value::ImmediateValue;
use crate::variable::{Immediate, Untyped};

/// Declares the variable to the registry before `main`.
#[doc(hidden)]
#[macro_export]
macro_rules! __declare_by_constructor {
    ($variable:ident) => {
        #[used]
        #[cfg_attr(
            not(any(target_vendor = "apple", target_os = "windows")),
            unsafe(link_section = ".init_array")
        )]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
        #[cfg_attr(target_os = "windows", unsafe(link_section = ".CRT$XCU"))]
        static __ENTER: extern "C" fn() = {
            extern "C" fn enter() {
                $crate::__private::enter_variable(&$variable);
            }
            enter
        };
    };
}

/// Registers one variable, whose module is not known.
pub fn enter_variable<T: ImmediateValue>(variable: &'static Immediate<T>) {
    lock::watch_fork();
    if let Ok(mut locked) = lock::lock() {
        crate::initial::enter(locked.registry(), Untyped::new(variable));
    }
}
