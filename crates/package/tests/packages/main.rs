//! What is written, read and refused. What dpkg, lintian, rpm and tar say of it
//! is asked by the integration tests.

mod archives;
mod child;
mod faults;
mod judged;
mod read;
mod refusals;
mod same_bytes;
mod support;
mod wheels;
