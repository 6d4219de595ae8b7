//! The form of paths in files: text, or bytes if they are no UTF-8.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PathText<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes(Vec<u8>),
}

impl<'a> From<&'a Path> for PathText<'a> {
    fn from(path: &'a Path) -> Self {
        match path.to_str() {
            Some(text) => Self::Text(text.into()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl From<PathText<'_>> for PathBuf {
    fn from(text: PathText<'_>) -> Self {
        match text {
            PathText::Text(text) => Self::from(text.into_owned()),
            PathText::Bytes(bytes) => Self::from(OsString::from_vec(bytes)),
        }
    }
}

pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    PathText::from(path).serialize(to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    PathText::deserialize(from).map(Into::into)
}

/// The same for an optional path.
pub(super) mod option {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::watch::path_text::PathText;

    #[expect(clippy::ref_option, reason = "serde hands it over so")]
    pub(crate) fn serialize<S: Serializer>(
        path: &Option<PathBuf>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_deref().map(PathText::from).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<PathText<'_>>::deserialize(from)?.map(Into::into))
    }
}

/// The same for paths with another value each.
pub(super) mod pairs {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::watch::path_text::PathText;

    pub(crate) fn serialize<T: Serialize, S: Serializer>(
        pairs: &[(PathBuf, T)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(pairs.iter().map(|(path, other)| (PathText::from(path.as_path()), other)))
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(PathBuf, T)>, D::Error> {
        let pairs = Vec::<(PathText<'_>, T)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(path, other)| (path.into(), other)).collect())
    }
}
