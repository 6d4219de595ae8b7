//! The C library as programs in C and C++ use it.

mod faults;
mod header;
mod install;
mod lookup;
mod packages;
mod support;
