//! Makes programs and libraries smaller that a C compiler built, and runs them.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use gfxpack_fatbin::{Error, Library, slim};
use gfxpack_model::TargetId;
use tempfile::TempDir;

/// `EF_AMDGPU_MACH` of the code in the bundles, by target.
const MACHS: [(&str, u32); 5] = [
    ("gfx906", 0x2f),
    ("gfx1030", 0x36),
    ("gfx1100", 0x41),
    ("gfx11-generic", 0x54),
    ("amdgcnspirv", 0),
];

fn targets(text: &str) -> Vec<TargetId> {
    text.split(',').map(|target| target.parse().expect("a target")).collect()
}

/// Code for this target: a header, and bytes that differ from any other's.
fn code(target: &str, seed: u32, size: usize) -> Vec<u8> {
    let name = target.split(':').next().expect("a processor");
    let mach = MACHS.iter().find(|(known, _)| *known == name).expect("a known one").1;
    let mut state = seed.wrapping_mul(0x9e37_79b9) ^ mach;
    let mut bytes: Vec<u8> = (0..size)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    bytes[..20].fill(0);
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[8] = 3;
    bytes[18..20].copy_from_slice(&0xe0_u16.to_le_bytes());
    bytes[48..52].copy_from_slice(&mach.to_le_bytes());
    bytes
}

/// A bundle as clang writes it.
fn bundle(targets: &[&str], seed: u32) -> Vec<u8> {
    let ids = targets.iter().map(|target| format!("hipv4-amdgcn-amd-amdhsa--{target}"));
    let ids: Vec<String> =
        ["host-x86_64-unknown-linux--".to_owned()].into_iter().chain(ids).collect();
    let mut header = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    header.extend((ids.len() as u64).to_le_bytes());
    let (mut at, mut bodies) = (4096_usize, Vec::new());
    for (index, id) in ids.iter().enumerate() {
        let size = if index == 0 { 0 } else { 20_000 + 1000 * index };
        for number in [at, size, id.len()] {
            header.extend((number as u64).to_le_bytes());
        }
        header.extend(id.as_bytes());
        if index > 0 {
            bodies.push((at, code(targets[index - 1], seed, size)));
            at = (at + size).next_multiple_of(4096);
        }
    }
    let end = bodies.last().map_or(header.len(), |(at, body)| at + body.len());
    header.resize(end, 0);
    bodies.iter().for_each(|(at, body)| header[*at..at + body.len()].copy_from_slice(body));
    header
}

/// The same, compressed.
fn compressed(plain: &[u8], version: u16) -> Vec<u8> {
    let packed = zstd::bulk::compress(plain, 3).expect("compressed");
    let mut bytes = b"CCOB".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(1_u16.to_le_bytes());
    match version {
        1 => bytes.extend((plain.len() as u32).to_le_bytes()),
        2 => {
            bytes.extend((packed.len() as u32 + 24).to_le_bytes());
            bytes.extend((plain.len() as u32).to_le_bytes());
        }
        _ => {
            bytes.extend((packed.len() as u64 + 32).to_le_bytes());
            bytes.extend((plain.len() as u64).to_le_bytes());
        }
    }
    bytes.extend([0; 8]);
    bytes.extend(packed);
    bytes
}

#[expect(clippy::disallowed_methods, reason = "compilers, and what they built, are started")]
fn output(program: &Path, words: &[&str], dir: &Path) -> String {
    let output = Command::new(program).args(words).current_dir(dir).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// A directory with two bundles, and what is built with them.
struct Built(TempDir);

impl Built {
    fn new(first: &[u8], second: &[u8]) -> Self {
        let dir = tempfile::tempdir().expect("made");
        fs::write(dir.path().join("first"), first).expect("written");
        fs::write(dir.path().join("second"), second).expect("written");
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn build(&self, name: &str, options: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/registers.c");
        let defines = ["FIRST", "SECOND"]
            .map(|name| format!("-D{name}=\"{}\"", self.path(&name.to_lowercase()).display()));
        let out = self.path(name);
        let mut words = vec!["-O1", "-g", "-o", out.to_str().expect("text")];
        words.extend(defines.iter().map(String::as_str));
        words.extend(options);
        words.push(source.to_str().expect("text"));
        output(Path::new("cc"), &words, self.0.path());
        out
    }

    /// The smaller file.
    fn slim(&self, file: &Path, wanted: &str) -> PathBuf {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        let out = self.path(&format!("slim/{name}"));
        fs::create_dir_all(self.path("slim")).expect("made");
        let (from, to) = (File::open(file).expect("opened"), File::create(&out).expect("made"));
        let slimmed = slim(&from, &to, &targets(wanted)).expect("understood").expect("smaller");
        assert_eq!(slimmed.after, out.metadata().expect("there").len());
        assert!(slimmed.after < slimmed.before);
        fs::set_permissions(&out, fs::Permissions::from_mode(0o755)).expect("set");
        out
    }
}

/// The lines about these targets, and about the host.
fn about(text: &str, wanted: &[&str]) -> Vec<String> {
    let is_kept = |line: &&str| {
        line.contains("host-") || wanted.iter().any(|it| line.contains(&format!("--{it} ")))
    };
    text.lines().filter(is_kept).map(str::to_owned).collect()
}

const ALL: [&str; 4] = ["gfx906", "gfx1030", "gfx1100", "gfx11-generic"];

fn plain() -> Built {
    Built::new(&bundle(&ALL, 1), &bundle(&ALL, 2))
}

#[test]
fn programs_run_as_before_with_the_code_that_is_left() {
    let built = plain();
    // hipcc brings this linker: it joins the writable segments, not the read-only ones.
    let lld = ["-pie", "-fPIE", "-fuse-ld=lld", "-B/usr/lib/llvm-15/bin"];
    let with_lld = Path::new("/usr/lib/llvm-15/bin/ld.lld").exists().then_some(("lld", &lld[..]));
    for (name, options) in [
        ("pie", ["-pie", "-fPIE"].as_slice()),
        ("fixed", &["-no-pie"]),
        ("relr", &["-pie", "-Wl,-z,pack-relative-relocs"]),
    ]
    .into_iter()
    .chain(with_lld)
    {
        let program = built.build(name, options);
        let before = output(&program, &[], built.0.path());
        let smaller = built.slim(&program, "gfx1100");
        let kept = about(&before, &["gfx1100", "gfx11-generic"]);
        assert_eq!(kept.len(), 6, "{before}");
        let after = output(&smaller, &[], built.0.path());
        assert_eq!(after.lines().collect::<Vec<_>>(), kept, "{name}");
        for tool in ["strip", "objcopy"] {
            let tooled = built.path(&format!("{name}.{tool}"));
            let words = match tool {
                "strip" => vec!["-o", tooled.to_str().unwrap(), smaller.to_str().unwrap()],
                _ => vec!["--strip-debug", smaller.to_str().unwrap(), tooled.to_str().unwrap()],
            };
            output(Path::new(tool), &words, built.0.path());
            assert_eq!(output(&tooled, &[], built.0.path()), after, "{name} {tool}");
        }
    }
}

#[test]
fn no_address_outside_of_the_bundles_changes() {
    let built = plain();
    let library = built.build("libshow.so", &["-shared", "-fPIC", "-DLIBRARY"]);
    let smaller = built.slim(&library, "gfx906,gfx1030");
    let symbols =
        |file: &Path| output(Path::new("nm"), &["-D", file.to_str().unwrap()], built.0.path());
    assert_eq!(symbols(&library), symbols(&smaller));
    let read = |file: &Path| Library::read(&File::open(file).unwrap()).unwrap().unwrap();
    let (before, after) = (read(&library), read(&smaller));
    assert_eq!(before.wrappers.len(), after.wrappers.len());
    for bundle in after.bundles.values() {
        let ids: Vec<&str> = bundle.entries.iter().map(|entry| &*entry.id).collect();
        assert_eq!(ids.len(), 3, "{ids:?}");
    }
    // Nothing is left to take out, and the same input gives the same bytes.
    let from = File::open(&smaller).unwrap();
    let none = slim(&from, &tempfile::tempfile().unwrap(), &targets("gfx906,gfx1030")).unwrap();
    assert_eq!(none, None);
    let first = fs::read(&smaller).unwrap();
    assert_eq!(first, fs::read(built.slim(&library, "gfx906,gfx1030")).unwrap());
}

/// As clang does for -fgpu-rdc: wrappers lead to symbols that the library exports.
#[test]
fn exported_bundles_are_found_by_their_symbols() {
    let built = plain();
    let library = built.build("libshow.so", &["-shared", "-fPIC", "-DLIBRARY", "-DRDC"]);
    let smaller = built.slim(&library, "gfx1030");
    let main = built.path("main.c");
    fs::write(&main, "int show(void); int main(void) { return show(); }").unwrap();
    let shown = |library: &Path| {
        let program = library.with_file_name("main");
        let words = [&program, &main, library].map(|path| path.to_str().unwrap());
        let words = ["-Wl,-rpath,$ORIGIN", "-o", words[0], words[1], words[2]];
        output(Path::new("cc"), &words, built.0.path());
        output(&program, &[], built.0.path())
    };
    let kept = about(&shown(&library), &["gfx1030"]);
    assert_eq!(kept.len(), 4);
    assert_eq!(shown(&smaller).lines().collect::<Vec<_>>(), kept);
}

#[test]
fn spirv_serves_every_gpu() {
    let code = bundle(&["gfx906", "gfx1030", "amdgcnspirv"], 1);
    let built = Built::new(&code, &code);
    let program = built.build("program", &["-pie", "-fPIE"]);
    let before = output(&program, &[], built.0.path());
    for (wanted, kept) in
        [("gfx1201", &["amdgcnspirv"][..]), ("gfx906", &["gfx906", "amdgcnspirv"])]
    {
        let after = output(&built.slim(&program, wanted), &[], built.0.path());
        assert_eq!(after.lines().collect::<Vec<_>>(), about(&before, kept), "{wanted}");
    }
}

#[test]
fn compressed_bundles_keep_their_version() {
    for version in 1..=3 {
        let (first, second) = (bundle(&ALL, 1), bundle(&ALL, 2));
        let built = Built::new(&compressed(&first, version), &compressed(&second, version));
        let program = built.build("program", &["-pie", "-fPIE"]);
        let smaller = built.slim(&program, "gfx1030");
        assert_eq!(output(&smaller, &[], built.0.path()).lines().count(), 2, "it runs");
        let bytes = fs::read(&smaller).unwrap();
        let library = Library::read(&File::open(&smaller).unwrap()).unwrap().unwrap();
        for (seed, bundle) in (1..).zip(library.bundles.values()) {
            let at = bundle.at as usize;
            assert_eq!(bytes[at + 4], version as u8);
            let header = [20, 24, 32][usize::from(version) - 1];
            let packed = &bytes[at + header..at + bundle.size as usize];
            let plain = zstd::decode_all(packed).unwrap();
            let entry = bundle.entries.last().unwrap();
            let code_at = entry.offset as usize;
            assert_eq!(bundle.entries.len(), 2);
            assert_eq!(&plain[code_at..], code("gfx1030", seed, entry.size as usize), "{version}");
        }
    }
}

#[test]
fn what_would_be_left_without_code_is_refused() {
    let built = Built::new(&bundle(&ALL, 1), &bundle(&["gfx906"], 2));
    let program = File::open(built.build("program", &["-pie", "-fPIE"])).unwrap();
    let refused = slim(&program, &tempfile::tempfile().unwrap(), &targets("gfx1100"));
    assert!(matches!(refused, Err(Error::NoCode { without: 1, of: 2, .. })), "{refused:?}");
}

/// Every result of a damaged file is an error, or a file that can be read again.
#[test]
fn damage_is_refused_or_harmless() {
    let built = plain();
    let library = built.build("libshow.so", &["-shared", "-fPIC", "-DLIBRARY"]);
    let whole = fs::read(&library).unwrap();
    let (wanted, mut state) = (targets("gfx1100"), 1_u64);
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let interesting: Vec<u64> = {
        let read = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
        let sections = read(40);
        let table = (0..(whole.len() as u64 - sections)).map(|at| sections + at);
        (0..0x400).chain(table).collect()
    };
    let copy = tempfile::tempfile().unwrap();
    copy.write_all_at(&whole, 0).unwrap();
    let (mut refused, rounds) = (0, 3000);
    for _ in 0..rounds {
        let at = match next(3) {
            0 => next(whole.len() as u64),
            _ => interesting[next(interesting.len() as u64) as usize],
        };
        let old = whole[at as usize];
        let new = [0, 0xff, old ^ 1 << next(8), next(256) as u8][next(4) as usize];
        copy.write_all_at(&[new], at).unwrap();
        let out = tempfile::tempfile().unwrap();
        match slim(&copy, &out, &wanted) {
            Ok(Some(_)) => {
                let library =
                    Library::read(&out).expect("it can be read again").expect("a library");
                assert_eq!(library.wrappers.len(), 2, "byte {at}: {old} became {new}");
            }
            Ok(None) => {}
            Err(_) => refused += 1,
        }
        copy.write_all_at(&[old], at).unwrap();
    }
    assert!((rounds / 20..rounds).contains(&refused), "{refused} of {rounds} refused");
}
