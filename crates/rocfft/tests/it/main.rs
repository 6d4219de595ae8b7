//! The file from outside: written, read, verified and merged; damaged in every
//! byte and made by others. Plans and logs as text.

mod damage;
mod logs;
mod merge;
mod places;
mod plans;
mod round_trip;
mod support;
