//! The header and the packaging recipes of the C library, as texts. The
//! integration tests build programs with the library itself.

mod header;
mod packages;
