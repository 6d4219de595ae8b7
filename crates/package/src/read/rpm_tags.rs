//! The tags of an .rpm's header that rpm knows, with the types of their values.
//!
//! Source: rpm 4.18, include/rpm/rpmtag.h, `rpmTag_e`, as lib/gentagtbl.sh
//! reads it: what is marked internal or unimplemented has no type.

use super::rpm_types as types;

/// The type of an entry's values, in rpm's classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// `RPM_STRING_TYPE`, `RPM_STRING_ARRAY_TYPE`, `RPM_I18NSTRING_TYPE`: any of
    /// these three.
    Text,
    /// Exactly this type.
    Exact(u32),
}

/// Ranges of consecutive tags: first and last in turn.
type Tags = &'static [u32];

const CHARS: Tags = &[1029, 1029];
const NUMBERS_16: Tags = &[1030, 1030, 1033, 1033];
const NUMBERS_32: Tags = &[
    257, 257, 277, 277, 1003, 1003, 1006, 1006, 1008, 1009, 1028, 1028, 1034, 1034, 1037, 1037,
    1045, 1046, 1048, 1048, 1051, 1053, 1068, 1069, 1080, 1080, 1095, 1096, 1106, 1106, 1112, 1112,
    1114, 1114, 1116, 1116, 1119, 1119, 1127, 1129, 1134, 1134, 1140, 1141, 1143, 1145, 1158, 1158,
    1161, 1161, 1195, 1195, 5011, 5011, 5017, 5027, 5032, 5033, 5037, 5037, 5045, 5045, 5048, 5048,
    5051, 5051, 5054, 5054, 5057, 5057, 5068, 5068, 5070, 5070, 5072, 5072, 5078, 5078, 5080, 5080,
    5082, 5082, 5084, 5085, 5091, 5091, 5093, 5093,
];
const NUMBERS_64: Tags = &[270, 271, 5008, 5009];
const TEXTS: Tags = &[
    100, 100, 266, 266, 269, 269, 273, 273, 276, 276, 1000, 1002, 1004, 1005, 1007, 1007, 1010,
    1011, 1014, 1016, 1018, 1027, 1035, 1036, 1039, 1040, 1044, 1044, 1047, 1047, 1049, 1050, 1054,
    1055, 1059, 1062, 1064, 1067, 1079, 1079, 1081, 1082, 1085, 1092, 1094, 1094, 1097, 1099, 1113,
    1113, 1115, 1115, 1117, 1118, 1120, 1126, 1132, 1133, 1135, 1135, 1142, 1142, 1147, 1157, 1159,
    1160, 1196, 1196, 5000, 5002, 5005, 5007, 5010, 5010, 5012, 5016, 5030, 5031, 5034, 5036, 5040,
    5044, 5046, 5047, 5049, 5050, 5052, 5053, 5055, 5056, 5058, 5062, 5066, 5067, 5069, 5069, 5071,
    5071, 5076, 5077, 5079, 5079, 5081, 5081, 5086, 5090, 5092, 5092, 5096, 5101,
];
const BINARIES: Tags = &[259, 259, 261, 262, 267, 268, 1012, 1013, 1043, 1043, 1146, 1146];

/// The type of a tag's values; `None` for a tag that rpm does not know, whose
/// values may have any.
///
/// Source: rpm 4.18, lib/tagname.c, `rpmTagGetTagType`, `rpmTagTypeGetClass`.
pub(super) fn class(tag: u32) -> Option<Class> {
    let classes = [
        (TEXTS, Class::Text),
        (NUMBERS_32, Class::Exact(types::INT32)),
        (NUMBERS_64, Class::Exact(types::INT64)),
        (NUMBERS_16, Class::Exact(types::INT16)),
        (BINARIES, Class::Exact(types::BIN)),
        (CHARS, Class::Exact(types::CHAR)),
    ];
    let has = |tags: Tags| tags.chunks_exact(2).any(|run| (run[0]..=run[1]).contains(&tag));
    classes.into_iter().find(|(tags, _)| has(tags)).map(|(_, class)| class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_have_the_types_that_rpm_gives_them() {
        for (tag, expected) in [
            (1000, Some(Class::Text)),
            (1009, Some(Class::Exact(types::INT32))),
            (1029, Some(Class::Exact(types::CHAR))),
            (1030, Some(Class::Exact(types::INT16))),
            (5008, Some(Class::Exact(types::INT64))),
            (5092, Some(Class::Text)),
            (1146, Some(Class::Exact(types::BIN))),
            // Without a number, internal, and not assigned.
            (63, None),
            (1017, None),
            (1100, None),
            (7000, None),
        ] {
            assert_eq!(class(tag), expected, "{tag}");
        }
    }
}
