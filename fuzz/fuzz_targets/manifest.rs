//! Any text as a kernel manifest and as a list of keys: an error with its
//! place, or keys that MIOpen can ask for.
#![no_main]

use gfxpack_model::Error;
use gfxpack_plan::key_list::{self, KeyRequest};
use gfxpack_plan::{expand, manifest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if text.contains("kernel_name") {
        let list = key_list::parse_keys("keys.jsonl", text);
        if let Ok(list) = &list {
            assert!(list.unusable.iter().all(|(.., fault)| fault.hint().is_some()));
        }
        check(text, "keys.jsonl", list.map(|list| list.keys));
        return;
    }
    let expanded = manifest::parse("kernels.toml", text).and_then(|manifest| {
        // One with XNACK and one without: filters tell them apart.
        expand::expand(&manifest, "gfx90a")?;
        expand::expand(&manifest, "gfx1030")
    });
    check(text, "kernels.toml", expanded);
});

fn check(text: &str, file: &str, requests: Result<Vec<KeyRequest>, Error>) {
    match requests {
        Ok(requests) => {
            for request in &requests {
                assert_eq!(request.key.check(), Ok(request.language));
                let source = request.source.file_name().and_then(|name| name.to_str());
                assert_eq!(request.key.source_name(), source);
            }
        }
        Err(error) => {
            let lines = text.lines().count().max(1);
            let message = error.to_string();
            let place = message.strip_prefix(file).and_then(|rest| rest.strip_prefix(':'));
            let line = place.and_then(|rest| rest.split(':').next()?.parse().ok());
            assert!(line.is_some_and(|line| (1..=lines + 1).contains(&line)), "{error}");
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
        }
    }
}
