//! How a declaration reaches the registry.
//!
//! Where the target has templates, by a record in the module's table, which the module's
//! constructor hands over. Elsewhere by a constructor for each variable.

pub(crate) mod by_constructor;
mod by_record;

cfg_select! {
    miri => { pub use crate::__declare_by_constructor as declare; }
    all(target_arch = "x86_64", target_pointer_width = "64", target_os = "linux") => {
        pub use crate::__declare_by_record as declare;
    }
    _ => { pub use crate::__declare_by_constructor as declare; }
}
