//! One stored plan on several machines: with shards, the bytes are those of one machine, and
//! every fault is reported or repaired.

mod faults;
mod lab;
mod partial;
mod routes;
mod templates;
