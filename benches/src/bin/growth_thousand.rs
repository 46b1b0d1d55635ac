//! One site, and 1,000 others of another variable (`immediate_benches::others`).

#![allow(unsafe_code)]

immediate_benches::growth_program!(1000);
