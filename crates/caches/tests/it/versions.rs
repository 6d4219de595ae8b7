//! Clearing the cache of one version of MIOpen, or of all but the newest.

use gfxpack_caches::Versions;

use crate::support::User;

/// The removed entries of MIOpen's cache, and `name: reason` of those kept.
fn cleared(versions: &Versions, user: &User) -> (Vec<String>, Vec<String>) {
    let (mut gone, mut kept) = (Vec::new(), Vec::new());
    let mut cleaner = user.cleaner();
    cleaner.tuning = true;
    for directory in &user.directories("miopen") {
        let scan = directory.scan().expect("readable");
        for entry in &scan.entries {
            let path = user.below(&entry.path);
            match versions.keep(&scan, entry).or_else(|| cleaner.reason_to_keep(directory, entry)) {
                None => gone.push(path),
                Some(why) => kept.push(format!("{path}: {}", why.name)),
            }
        }
    }
    (gone, kept)
}

#[test]
fn one_version_is_cleared_or_all_but_the_newest() {
    let user = User::new();
    for path in [
        "home/.cache/miopen/3.3.0./gfx906_60.ukdb",
        "home/.cache/miopen/3.4.0./gfx906_60.ukdb",
        "home/.cache/miopen/3.10.0.5b2d/gfx906_60.ukdb",
        "home/.config/miopen/gfx906_60.HIP.3_3_0_.ufdb.txt",
        "home/.config/miopen/gfx906_60.HIP.3_4_0_.ufdb.txt",
        "home/.config/miopen/gfx906_60_1.1.0.udb",
    ] {
        user.write(path, "x");
    }
    let one = Versions::Only("3.4.0".parse().expect("a version"));
    assert_eq!(
        cleared(&one, &user),
        (
            vec![
                "home/.cache/miopen/3.4.0.".to_owned(),
                "home/.config/miopen/gfx906_60.HIP.3_4_0_.ufdb.txt".to_owned(),
            ],
            vec![
                "home/.cache/miopen/3.10.0.5b2d: other-version".to_owned(),
                "home/.cache/miopen/3.3.0.: other-version".to_owned(),
                "home/.config/miopen/gfx906_60.HIP.3_3_0_.ufdb.txt: other-version".to_owned(),
                "home/.config/miopen/gfx906_60_1.1.0.udb: no-version".to_owned(),
            ]
        )
    );
    let (gone, kept) = cleared(&Versions::AllButNewest, &user);
    assert_eq!(
        gone,
        [
            "home/.cache/miopen/3.3.0.",
            "home/.cache/miopen/3.4.0.",
            "home/.config/miopen/gfx906_60.HIP.3_3_0_.ufdb.txt",
        ]
    );
    assert_eq!(
        kept,
        [
            "home/.cache/miopen/3.10.0.5b2d: newest-version",
            "home/.config/miopen/gfx906_60.HIP.3_4_0_.ufdb.txt: newest-version",
            "home/.config/miopen/gfx906_60_1.1.0.udb: no-version",
        ]
    );
    assert_eq!(cleared(&Versions::All, &user).0.len(), 6);
}
