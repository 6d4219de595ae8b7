//! Any text as a target: refused with a hint, or spelled in ways that parse
//! back.
#![no_main]

use gfxpack_model::{Target, TargetId, processors};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(id) = text.parse::<TargetId>() {
        assert_eq!(id.to_string().parse().as_ref(), Ok(&id), "{text:?}");
        assert!(id.serves(&id), "{text:?}");
    }
    let target: Target = match text.parse() {
        Ok(target) => target,
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.hint().is_empty());
            return;
        }
    };
    assert_eq!(target.to_string().parse().as_ref(), Ok(&target), "{text:?}");

    // MIOpen's name of the file says less, and always the same of it. Of a processor that is not
    // in the table it can't be told where its name ends and a hexadecimal count begins.
    let basename = target.db_basename();
    let known = processors::by_name(target.id().processor()).is_some();
    match basename.parse::<Target>() {
        Ok(again) => {
            assert_eq!(again.db_basename(), basename, "{text:?}");
            let same = again.compute_units() == target.compute_units()
                && again.id().processor() == target.id().processor();
            assert!(same || !known, "{text:?}: {basename} is {again}");
        }
        Err(error) => assert!(!known, "{text:?}: {error}"),
    }

    // Names that end up in paths and in package indices.
    for name in [basename, target.kdb_file_name(), target.ukdb_file_name()] {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
        assert!(name.chars().all(plain), "{text:?}: {name}");
    }
    let suffix = target.package_suffix();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(suffix.chars().all(plain), "{text:?}: {suffix}");
});
