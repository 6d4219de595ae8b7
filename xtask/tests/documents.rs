//! Checks that the files that documents name are there.

use std::fs;
use std::path::Path;

#[test]
fn documents_name_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut missing = Vec::new();
    for dir in ["", "docs", "ci", "packaging"].map(|dir| root.join(dir)) {
        for document in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()) {
            if document.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&document).unwrap();
            let mut check = |named: &str, path: &Path| {
                if !path.exists() {
                    missing.push(format!("{}: {named}", document.display()));
                }
            };
            for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
                if !link.contains("://") {
                    check(link, &dir.join(link));
                }
            }
            for word in text.split('`').skip(1).step_by(2) {
                let top = word.split('/').next().unwrap_or_default();
                let is_ours = ["crates", "xtask", "packaging", "ci", "docs", "tests", "fuzz"];
                if is_ours.contains(&top) && !word.contains(['*', '{', ' ', '<']) {
                    check(word, &root.join(word));
                }
            }
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}
