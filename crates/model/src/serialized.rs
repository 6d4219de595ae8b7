//! Serde's traits for values whose serialized form differs from their fields.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::digest::Digest;
use crate::target::{Target, TargetId};

/// Types that are serialized as their display text.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_serialized_as_their_display_text() {
        let target: Target = "gfx90a:xnack+@104".parse().unwrap();
        let digest = Digest::of(b"a");
        let json = serde_json::to_string(&(&target, target.id(), digest)).unwrap();
        assert_eq!(json, format!("[\"{target}\",\"{}\",\"{digest}\"]", target.id()));
        let back: (Target, TargetId, Digest) = serde_json::from_str(&json).unwrap();
        assert_eq!((&back.0, &back.1, back.2), (&target, target.id(), digest));
        assert!(serde_json::from_str::<Target>("\"gfx\"").is_err());
    }
}
