//! The file from outside: written, read, verified and merged; damaged in every
//! byte and made by others.

mod damage;
mod merge;
mod plans;
mod round_trip;
mod support;
