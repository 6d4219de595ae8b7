//! The header and the recipes of the C library, as texts. What programs make of
//! the library itself is asked by the integration tests.

mod header;
mod packages;
