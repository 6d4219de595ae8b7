//! Loads libMIOpen behind stand-ins and reports the kernels it asks for.

fn main() {}
