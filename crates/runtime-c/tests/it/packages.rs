//! The recipe of the .debs names the installed files.

/// The .debs' recipe has to repeat the version.
#[test]
fn the_deb_recipe_names_the_version() {
    let recipe = include_str!("../../Cargo.toml");
    let version = env!("CARGO_PKG_VERSION");
    let file = format!("libgfxpack_runtime.so.{version}\"");
    assert_eq!(recipe.matches(&file).count(), 2, "the file and the link to it");
    assert!(recipe.contains(&format!("libgfxpack-runtime0 (= {version}-1)")));
    let install = include_str!("../../install.sh");
    let soname = install.lines().find_map(|line| line.strip_prefix("soname=")).unwrap();
    assert!(include_str!("../../debian/symbols").starts_with(&format!("{soname} ")));
    let (library, number) = soname.split_once(".so.").unwrap();
    let shlibs = include_str!("../../debian/shlibs");
    assert!(shlibs.starts_with(&format!("{library} {number} libgfxpack-runtime{number} ")));
    assert!(recipe.contains(&format!("dest = \"usr/lib/{soname}\"")), "{soname}");
    assert!(recipe.contains(&format!("link_name = \"{soname}\"")), "{soname}");
}
