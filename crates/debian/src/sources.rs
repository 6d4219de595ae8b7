//! Finds the mirrors in this machine's apt sources.
//!
//! Source: sources.list(5).

use std::fs;
use std::path::Path;

use gfxpack_package::deb822;

/// The addresses of all package sources, in apt's order, without duplicates.
pub(crate) fn mirrors(apt: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |uri: &str| {
        let uri = uri.trim_end_matches('/').to_owned();
        let known = ["http://", "https://", "file:"].iter().any(|scheme| uri.starts_with(scheme));
        if known && !found.contains(&uri) {
            found.push(uri);
        }
    };
    let read = fs::read_dir(apt.join("sources.list.d")).into_iter().flatten();
    let mut files: Vec<_> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files.insert(0, apt.join("sources.list"));
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => text.lines().filter_map(one_line).for_each(&mut add),
            Some("sources") => stanzas(&text).iter().for_each(|uri| add(uri)),
            _ => {}
        }
    }
    found
}

/// The address in a line `deb [options] URI suite components`.
fn one_line(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(options) => options.split_once(']')?.1.trim_start(),
        None => rest,
    };
    rest.split_ascii_whitespace().next()
}

fn stanzas(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let read = deb822::paragraphs(text.as_bytes(), |stanza| {
        let values =
            |field| stanza.lines(field).into_iter().flatten().flat_map(str::split_whitespace);
        let enabled = stanza.line("Enabled").is_none_or(|enabled| enabled != "no");
        if enabled && values("Types").any(|kind| kind == "deb") {
            found.extend(values("URIs").map(str::to_owned));
        }
        true
    });
    if read.is_err() { Vec::new() } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_lists_are_read() {
        let apt = tempfile::tempdir().unwrap();
        let dir = apt.path().join("sources.list.d");
        fs::create_dir(&dir).unwrap();
        fs::write(
            apt.path().join("sources.list"),
            "# deb http://commented.example/debian sid main\n\
             deb-src http://source.example/debian sid main\n\
             deb cdrom:[Debian]/ sid main\n\
             deb [arch=amd64 signed-by=/x] http://one.example/debian/ sid main\n\
             deb\thttp://two.example/debian sid main\n\
             deb http://one.example/debian sid-updates main\n",
        )
        .unwrap();
        fs::write(
            dir.join("b.sources"),
            "# three\nTypes: deb deb-src\nURIs: http://three.example/debian\n https://four.example/debian\nSuites: sid\n\n\
             Types: deb-src\nURIs: http://five.example/debian\n\n\
             Enabled: no\nTypes: deb\nURIs: http://six.example/debian\n",
        )
        .unwrap();
        fs::write(dir.join("a.list"), "deb file:/srv/debian sid main\n").unwrap();
        fs::write(dir.join("c.disabled"), "deb http://seven.example/debian sid main\n").unwrap();
        let expected = [
            "http://one.example/debian",
            "http://two.example/debian",
            "file:/srv/debian",
            "http://three.example/debian",
            "https://four.example/debian",
        ];
        assert_eq!(mirrors(apt.path()), expected);
        assert!(mirrors(&apt.path().join("absent")).is_empty());
    }
}
