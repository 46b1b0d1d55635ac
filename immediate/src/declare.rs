//! How a declaration reaches the registry.
//!
//! Where the target has templates, by a record in the module's table, which the module's
//! constructor hands over. Elsewhere by a constructor for each variable.

pub(crate) mod by_constructor;
mod by_record;

immediate_arch::isa::records::select! {
    { pub use crate::__declare_by_record as declare; }
    { pub use crate::__declare_by_constructor as declare; }
}
