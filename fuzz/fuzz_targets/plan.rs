//! Any bytes as a stored plan: a header, an end of line, and its jobs. Refused
//! with a hint, or read alike by all ways to read it.
#![no_main]

use gfxpack_model::Digest;
use gfxpack_plan::stored::{Header, Jobs, read};
use gfxpack_plan::workers::InTurn;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let end = text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len());
    let Ok(mut header) = serde_json::from_slice::<Header<serde_json::Value>>(&text[..end]) else {
        return;
    };
    // Else nothing that was changed would be looked at any further.
    let lines = text.get(end + 1..).unwrap_or_default();
    header.jobs = lines.split_inclusive(|byte| *byte == b'\n').count();
    header.jobs_sha256 = Digest::of(lines);
    let all = read(&header, &mut &lines[..], &Jobs::All, &InTurn);
    let some = read(&header, &mut &lines[..], &Jobs::Only(&|_| true), &InTurn);
    for error in [&all, &some].into_iter().filter_map(|read| read.as_ref().err()) {
        assert!(!error.to_string().is_empty());
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
    }
    if let Ok(plan) = all {
        assert_eq!(plan.digest(), header.digest);
        assert_eq!(some.map(|some| some.jobs).ok(), Some(plan.jobs));
    }
});
