//! One site, and one other of another variable (`immediate_benches::others`).

#![allow(unsafe_code)]

immediate_benches::growth_program!(1);
