//! The installed library: its name, its exported symbols, and how other projects find it.

use std::path::PathBuf;

use super::support::*;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_library_goes_by_its_soname() {
    let machine = Machine::new();
    let lib = |name: &str| machine.libdir().join(name);
    let link = |name: &str| std::fs::read_link(lib(name)).unwrap();
    let file = format!("libgfxpack_runtime.so.{VERSION}");
    assert_eq!(link("libgfxpack_runtime.so"), PathBuf::from("libgfxpack_runtime.so.0"));
    assert_eq!(link("libgfxpack_runtime.so.0"), PathBuf::from(&file));
    let dynamic = text(run(command("readelf").arg("-dW").arg(lib(&file))).stdout);
    assert!(dynamic.contains("Library soname: [libgfxpack_runtime.so.0]"), "{dynamic}");
    for line in dynamic.lines().filter(|line| line.contains("NEEDED")) {
        let system = ["libc.so", "libm.so", "libgcc_s.so", "libdl.so", "libpthread.so", "ld-linux"];
        assert!(system.iter().any(|name| line.contains(name)), "a library of its own: {line}");
    }
}

/// Programs with an SQLite of their own must not meet ours.
#[test]
fn the_library_exports_only_the_headers_functions() {
    let machine = Machine::new();
    let library = machine.libdir().join("libgfxpack_runtime.so");
    let shown = text(run(command("nm").args(["-D", "--defined-only"]).arg(library)).stdout);
    // The version itself is a symbol of its own kind.
    let shown = shown.lines().filter(|line| !line.contains(" A "));
    let mut shown: Vec<_> = shown.filter_map(|line| line.split(' ').nth(2)).collect();
    let header = include_str!("../../../../crates/runtime-c/include/gfxpack_runtime.h");
    let code = header.lines().filter(|line| !line.trim_start().starts_with(['*', '/']));
    let mut declared: Vec<&str> = code
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter(|line| !line.starts_with("typedef"))
        .filter_map(|line| line.split_once('(').map(|(before, _)| before))
        .filter_map(|before| before.rsplit([' ', '*']).next())
        .collect();
    shown.sort_unstable();
    declared.sort_unstable();
    let declared: Vec<_> =
        declared.iter().map(|name| format!("{name}@@GFXPACK_RUNTIME_0.1")).collect();
    assert_eq!(shown, declared);
    assert!(declared.len() > 30, "{declared:?}");
}

/// libabigail compares; the copy whose header differs shows that it can fail.
#[test]
fn the_interface_equals_the_committed_one() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path();
    for name in ["interface.sh", "interface.xml", "gfxpack_runtime.map"] {
        std::fs::copy(crate_dir().join(name), copy.join(name)).unwrap();
    }
    std::fs::create_dir(copy.join("include")).unwrap();
    let header = std::fs::read_to_string(crate_dir().join("include/gfxpack_runtime.h")).unwrap();
    let compare = |header: &str| {
        std::fs::write(copy.join("include/gfxpack_runtime.h"), header).unwrap();
        command("sh").arg(copy.join("interface.sh")).output().unwrap()
    };
    let same = compare(&header);
    assert!(same.status.success(), "{}{}", text(same.stdout), text(same.stderr));
    for (was, is) in [
        ("GFXPACK_LAYER_SYSTEM = 2", "GFXPACK_LAYER_SYSTEM = 5"),
        ("size_t index", "uint32_t index"),
    ] {
        assert!(header.contains(was), "{was}");
        let changed = compare(&header.replace(was, is));
        assert!(!changed.status.success(), "{is}: {}", text(changed.stdout));
        assert!(text(changed.stderr).contains("interface changed"), "{is}");
    }
}

#[test]
fn pkg_config_finds_it() {
    let machine = Machine::new();
    assert_eq!(machine.pkg_config(&["--modversion"]), [VERSION]);
    let libdir = machine.libdir();
    let include = machine.root.join("usr/include");
    let expected = [
        format!("-I{}", include.display()),
        format!("-L{}", libdir.display()),
        "-lgfxpack_runtime".to_owned(),
    ];
    assert_eq!(machine.pkg_config(&["--cflags", "--libs"]), expected);
}

#[test]
fn cmake_finds_it_wherever_it_is_moved() {
    let machine = Machine::with_kdb();
    let moved = machine.root.join("moved");
    std::fs::rename(machine.root.join("usr"), &moved).unwrap();
    let project = machine.root.join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::copy(crate_dir().join("examples/find.c"), project.join("find.c")).unwrap();
    let (major_minor, _) = VERSION.rsplit_once('.').unwrap();
    let lists = format!(
        "cmake_minimum_required(VERSION 3.10)\nproject(find C)\n\
         find_package(gfxpack-runtime {major_minor} REQUIRED)\n\
         add_executable(find find.c)\ntarget_link_libraries(find gfxpack::runtime)\n"
    );
    std::fs::write(project.join("CMakeLists.txt"), lists).unwrap();
    let configure = |version: &str| {
        let lists = project.join("CMakeLists.txt");
        let text = std::fs::read_to_string(&lists).unwrap();
        let wanted = format!("gfxpack-runtime {version} REQUIRED");
        let had = format!("gfxpack-runtime {major_minor} REQUIRED");
        std::fs::write(&lists, text.replace(&had, &wanted)).unwrap();
        let mut cmake = command("cmake");
        cmake.arg("-S").arg(&project).arg("-B").arg(project.join(format!("build-{version}")));
        let prefix = moved.join("lib/multi-arch/cmake/gfxpack-runtime");
        let output = cmake.arg(format!("-Dgfxpack-runtime_DIR={}", prefix.display())).output();
        std::fs::write(&lists, text).unwrap();
        output.expect("`cargo xtask test --setup` installs cmake")
    };
    let output = configure(major_minor);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let build = project.join(format!("build-{major_minor}"));
    run(command("cmake").arg("--build").arg(&build));
    let mut program = machine.environment(command(build.join("find")));
    // Found by the path that CMake put into it.
    program.env_remove("LD_LIBRARY_PATH");
    let output = run(program.args([NAME, &args(0), "gfx906@60"]));
    assert_eq!(text(output.stdout), "364 bytes\n");
    for other in ["0.99", "1.0"] {
        assert!(!configure(other).status.success(), "version {other} is another one");
    }
}
