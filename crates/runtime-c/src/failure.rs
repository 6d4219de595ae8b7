//! The callers' errors, as text and as status.

use std::str::Utf8Error;

use gfxpack_model::TargetError;

use crate::status::Status;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error("failed to use `{0}`: it is a null pointer")]
    Null(&'static str),
    #[error("failed to read `{argument}` as UTF-8")]
    NotUtf8 { argument: &'static str, source: Utf8Error },
    #[error("failed to understand `{argument}`: {value} is not one of its values")]
    Value { argument: &'static str, value: i64 },
    #[error("failed to use `{0}`: it is not absolute")]
    Relative(&'static str),
    #[error("failed to understand `target`")]
    Target(#[source] TargetError),
    #[error("failed to compile `{name}`: {why}")]
    Compiler { name: String, why: String },
    #[error("failed inside of the library: {0}")]
    Panic(String),
}

impl Failure {
    pub(crate) fn status(&self) -> Status {
        match self {
            Self::Null(_) => Status::NullPointer,
            Self::NotUtf8 { .. } | Self::Value { .. } | Self::Relative(_) => {
                Status::InvalidArgument
            }
            Self::Target(_) => Status::InvalidTarget,
            Self::Compiler { .. } => Status::CompilerFailed,
            Self::Panic(_) => Status::Internal,
        }
    }

    /// What the programmer or user can do about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Null(_) => "the header says which pointers may be null".to_owned(),
            Self::NotUtf8 { .. } => "give paths and keys as UTF-8".to_owned(),
            Self::Value { .. } => {
                "give a value that the header defines, and of this library's version".to_owned()
            }
            Self::Relative(_) => "nothing is loaded from the working directory".to_owned(),
            Self::Target(error) => error.hint(),
            Self::Compiler { .. } => "see what the program's own compiler says".to_owned(),
            Self::Panic(_) => "report it with what led to it".to_owned(),
        }
    }
}
