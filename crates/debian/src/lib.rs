//! Fetches packages of Debian's archive, verified by the archive's signature,
//! and unpacks them into a directory without installing them.
