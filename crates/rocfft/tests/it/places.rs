use std::path::Path;

use gfxpack_rocfft::{FileNaming, Places, arch_of_file_name};

#[test]
fn the_library_s_directory_is_searched_unless_a_variable_names_a_file() {
    let dir = Path::new("/usr/lib/x86_64-linux-gnu");
    let places = Places::new(dir, FileNaming::Shared, "gfx906", None, Some(Path::new("")));
    let expected = ["rocfft_kernel_cache.db", "rocfft/rocfft_kernel_cache.db"];
    assert_eq!(places, Places { user: None, system: expected.map(|file| dir.join(file)).into() });
    let (user, system) = (Path::new("/x/fft.db"), Path::new("/y/fft.db"));
    let places = Places::new(dir, FileNaming::PerArch, "gfx906", Some(user), Some(system));
    assert_eq!(places, Places { user: Some(user.into()), system: vec![system.into()] });
    let memory = Places::new(dir, FileNaming::PerArch, "gfx1201", Some(":memory:".as_ref()), None);
    assert_eq!(memory.user, None);
    assert_eq!(memory.system[1], dir.join("rocfft/rocfft_kernel_cache_gfx1201.db"));
    assert_eq!(arch_of_file_name(&memory.system[1]), Some("gfx1201"));
    for other in ["rocfft_kernel_cache.db", "rocfft_kernel_cache_x.db", "gfx1201.kdb"] {
        assert_eq!(arch_of_file_name(Path::new(other)), None, "{other}");
    }
}
