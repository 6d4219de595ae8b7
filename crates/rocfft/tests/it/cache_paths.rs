use std::path::Path;

use gfxpack_rocfft::CachePaths;

#[test]
fn the_library_s_directory_is_searched_unless_a_variable_names_a_file() {
    let dir = Path::new("/usr/lib/x86_64-linux-gnu");
    let paths = CachePaths::new(dir, "shared.db", None, Some(Path::new("")));
    let expected = ["shared.db", "rocfft/shared.db"];
    assert_eq!(
        paths,
        CachePaths { user: None, system: expected.map(|file| dir.join(file)).into() }
    );
    let (user, system) = (Path::new("/x/fft.db"), Path::new("/y/fft.db"));
    let paths = CachePaths::new(dir, "gfx906.db", Some(user), Some(system));
    assert_eq!(paths, CachePaths { user: Some(user.into()), system: vec![system.into()] });
    let memory = CachePaths::new(dir, "gfx1201.db", Some(":memory:".as_ref()), None);
    assert_eq!(memory.user, None);
    assert_eq!(memory.system[1], dir.join("rocfft/gfx1201.db"));
}
