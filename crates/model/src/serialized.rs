//! How serde reads and writes values whose form is no matter of their fields.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::args::Args;
use crate::digest::Digest;
use crate::target::{Target, TargetId};

/// Values that are written as the text they are shown as.
macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        }
    )*};
}
as_text!(Digest, Target, TargetId);

impl Serialize for Args {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = Vec::<String>::deserialize(deserializer)?;
        Ok(words.iter().map(String::as_str).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_as_a_list() {
        for list in [&[][..], &[""], &["a", "", "b c"], &["-DA=\"x\"", "é"]] {
            let words: Args = list.iter().copied().collect();
            let json = serde_json::to_string(&words).unwrap();
            assert_eq!(json, serde_json::to_string(list).unwrap());
            assert_eq!(serde_json::from_str::<Args>(&json).unwrap(), words);
        }
    }

    #[test]
    fn values_are_written_as_the_text_they_are_shown_as() {
        let target: Target = "gfx90a:xnack+@104".parse().unwrap();
        let digest = Digest::of(b"a");
        let json = serde_json::to_string(&(&target, target.id(), digest)).unwrap();
        assert_eq!(json, format!("[\"{target}\",\"{}\",\"{digest}\"]", target.id()));
        let back: (Target, TargetId, Digest) = serde_json::from_str(&json).unwrap();
        assert_eq!((&back.0, &back.1, back.2), (&target, target.id(), digest));
        assert!(serde_json::from_str::<Target>("\"gfx\"").is_err());
    }
}
