//! Placeholder line replaced by the crate's own text.
