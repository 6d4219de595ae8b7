//! Any bytes as a shard's manifest, as they are and with the digest that ends
//! one: refused in words, or written again as they were understood.
#![no_main]

use gfxpack_model::Digest;
use gfxpack_plan::shard::ShardManifest;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    // Else nothing that was changed would be looked at any further.
    let tail = format!("{{\"sha256\":\"{}\"}}\n", Digest::of(text));
    for mut text in [text, &[text, tail.as_bytes()].concat()] {
        match ShardManifest::read(&mut text) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(manifest) => {
                assert!(manifest.jobs.is_sorted_by(|a, b| a.job < b.job));
                let mut written = Vec::new();
                manifest.write(&mut written).expect("memory takes all");
                let again = ShardManifest::read(&mut &written[..]);
                assert_eq!(again.expect("what was written is read"), manifest);
            }
        }
    }
});
