//! One stored plan on several machines: by shards, a real Slurm and a real
//! ninja the bytes are those of one machine, and every fault is told or made
//! good.

mod faults;
mod lab;
mod partial;
mod routes;
mod slurm;
mod slurm_lab;
mod templates;
