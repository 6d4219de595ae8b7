//! Spellings of targets: written ones parse back, and no text makes the parser
//! panic.

use std::collections::HashMap;

use gfxpack_model::processors::{self, PROCESSORS};
use gfxpack_model::{Target, TargetId};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() }
}

/// Every possible target; features only if the processor has them.
fn target() -> impl Strategy<Value = Target> {
    let count = prop::option::of(prop_oneof![1..=70_u32, 1..=4095_u32]);
    let feature = prop::option::of(any::<bool>());
    (prop::sample::select(PROCESSORS), feature.clone(), feature, count).prop_map(
        |(processor, sramecc, xnack, count)| {
            let sramecc = sramecc.filter(|_| processor.sramecc);
            let xnack = xnack.filter(|_| processor.xnack);
            Target::new(TargetId::new(processor.name).with_features(sramecc, xnack), count)
        },
    )
}

/// Parts of targets in any order: closer to valid than arbitrary text.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PROCESSORS).prop_map(|processor| processor.name.to_owned()),
        4 => prop::sample::select(vec![
            "gfx", "gfx9", "_xnack", ":xnack+", ":xnack-", ":sramecc+", ":sramecc-", ":", "@",
            "_", "+", "-", "0", "64", "68", "41", "104", "4096", "fff", "FF", "\u{e4}", "\u{130}",
        ])
        .prop_map(str::to_owned),
        1 => "[0-9a-f]{1,5}",
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// Properties of any text.
fn check(text: &str) {
    match text.parse::<Target>() {
        Ok(target) => {
            assert_eq!(target.to_string().parse().as_ref(), Ok(&target), "{text:?}");
            let basename = target.db_basename();
            match basename.parse::<Target>() {
                Ok(again) => assert_eq!(again.db_basename(), basename, "{text:?}"),
                // If the name is not in the table, it is ambiguous where it
                // ends and a hexadecimal count begins.
                Err(error) => {
                    let known = processors::by_name(target.id().processor()).is_some();
                    assert!(!known && target.compute_units() > Some(64), "{text:?}: {error}");
                }
            }
        }
        Err(error) => {
            assert!(error.to_string().contains(text), "the message names the text: {error}");
            assert!(!error.hint().is_empty());
        }
    }
    if let Ok(id) = text.parse::<TargetId>() {
        assert_eq!(id.to_string().parse(), Ok(id), "{text:?}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn written_targets_parse_back(target in target()) {
        prop_assert_eq!(target.to_string().parse(), Ok(target.clone()));
        let id = target.id();
        prop_assert_eq!(id.to_string().parse(), Ok(id.clone()));
    }

    #[test]
    fn miopens_name_keeps_processor_xnack_and_count(target in target()) {
        let basename = target.db_basename();
        let again: Target = basename.parse().unwrap();
        prop_assert_eq!(again.db_basename(), basename);
        prop_assert_eq!(again.kdb_file_name(), target.kdb_file_name());
        prop_assert_eq!(again.package_suffix(), target.package_suffix());
        prop_assert_eq!(again.compute_units(), target.compute_units());
        prop_assert_eq!(again.id().processor(), target.id().processor());
        // XNACK off and unspecified have the same name; SRAM ECC is not part of
        // it.
        let xnack = target.id().xnack() == Some(true);
        prop_assert_eq!(again.id().xnack(), xnack.then_some(true));
        prop_assert_eq!(again.id().sramecc(), None);
    }

    #[test]
    fn nearly_valid_text_is_rejected_or_parses_back(text in nearly()) {
        check(&text);
    }
}

/// Collisions that random pairs would miss: every processor with every count.
#[test]
fn every_count_of_every_processor_has_a_unique_name() {
    let (mut names, mut suffixes) = (HashMap::new(), HashMap::new());
    for processor in PROCESSORS {
        for xnack in
            [None, Some(true)].into_iter().filter(|xnack| xnack.is_none() || processor.xnack)
        {
            for count in std::iter::once(None).chain((1..=4095).map(Some)) {
                let id = TargetId::new(processor.name).with_features(None, xnack);
                let target = Target::new(id, count);
                let parsed = target.db_basename().parse::<Target>();
                assert_eq!(parsed.as_ref(), Ok(&target), "{}", target.db_basename());
                let names = [&mut names, &mut suffixes].into_iter();
                for (names, name) in names.zip([target.db_basename(), target.package_suffix()]) {
                    let other = names.insert(name, target.clone());
                    assert_eq!(other, None, "the same name as {target}");
                }
            }
        }
    }
}
