//! One stored plan on several machines: with shards, a real Slurm and a real ninja, the bytes are
//! those of one machine, and every fault is reported or repaired.

mod faults;
mod lab;
mod partial;
mod routes;
mod slurm;
mod slurm_lab;
mod templates;
