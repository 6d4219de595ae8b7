//! The committed header matches the sources.

use std::path::Path;

/// The sources, in the order of their functions in the header.
const SOURCES: [&str; 10] = [
    "version", "status", "boundary", "layer", "device", "warning", "options", "cache", "lookup",
    "miss",
];

fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn generated() -> String {
    let config = cbindgen::Config::from_file(crate_dir().join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(crate_dir().join(format!("src/{source}.rs")));
    }
    let mut header = Vec::new();
    builder.generate().unwrap().write(&mut header);
    String::from_utf8(header).unwrap()
}

/// Rewrites the header if it differs, so that the next run passes.
#[test]
fn the_header_matches_the_sources() {
    let path = crate_dir().join("include/gfxpack_runtime.h");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let generated = generated();
    if committed != generated {
        std::fs::write(&path, generated).unwrap();
        panic!("{} was out of date and has been written anew: commit it", path.display());
    }
}

/// Ownership and threads must be documented.
#[test]
fn every_function_documents_which_threads_may_call_it() {
    let header = include_str!("../../include/gfxpack_runtime.h");
    let mut comment = String::new();
    let mut functions = 0;
    for line in header.lines() {
        if line.starts_with("/**") {
            comment.clear();
        }
        comment.push_str(line);
        if line.contains(" gfxpack_") || line.contains("*gfxpack_") {
            let declares = line.starts_with(|first: char| first.is_ascii_lowercase())
                && line.contains('(')
                && !line.starts_with("typedef");
            if declares {
                functions += 1;
                assert!(comment.contains("thread"), "{line} says nothing of threads");
                let hands_out = line.contains("char *") && line.starts_with("const char *");
                let owned = ["wned", "static", "belongs"].iter().any(|it| comment.contains(it));
                assert!(!hands_out || owned, "{line}: whose is it?");
            }
        }
    }
    assert!(functions > 30, "{functions} functions");
}
