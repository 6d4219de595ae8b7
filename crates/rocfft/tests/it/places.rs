use std::path::Path;

use gfxpack_rocfft::Places;

#[test]
fn the_librarys_directory_is_searched_unless_a_variable_names_a_file() {
    let dir = Path::new("/usr/lib/x86_64-linux-gnu");
    let places = Places::new(dir, "shared.db", None, Some(Path::new("")));
    let expected = ["shared.db", "rocfft/shared.db"];
    assert_eq!(places, Places { user: None, system: expected.map(|file| dir.join(file)).into() });
    let (user, system) = (Path::new("/x/fft.db"), Path::new("/y/fft.db"));
    let places = Places::new(dir, "gfx906.db", Some(user), Some(system));
    assert_eq!(places, Places { user: Some(user.into()), system: vec![system.into()] });
    let memory = Places::new(dir, "gfx1201.db", Some(":memory:".as_ref()), None);
    assert_eq!(memory.user, None);
    assert_eq!(memory.system[1], dir.join("rocfft/gfx1201.db"));
}
