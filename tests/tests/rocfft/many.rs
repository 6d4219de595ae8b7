//! Many plans and GPUs: with its package installed, the real librocfft compiles nothing. Compiles
//! some 6,000 kernels, which takes a quarter of an hour on two cores, so it only runs on request:
//! `cargo test -p gfxpack-tests --test rocfft -- --ignored many`.

use gfxpack_rocfft::{FftPlan, InstalledCache, check};
use gfxpack_tests::project::Project;

use crate::built::{dist, root_with};
use crate::{library, plans, with};

const PROCESSORS: [&str; 6] = ["gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];

/// Lengths of one, two and three dimensions: powers of the small primes, their
/// products, primes, and such as no kernel of rocFFT's covers at once.
const SHAPES: [&str; 92] = [
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "10",
    "11",
    "12",
    "13",
    "14",
    "15",
    "16",
    "17",
    "18",
    "20",
    "21",
    "22",
    "24",
    "25",
    "26",
    "27",
    "28",
    "30",
    "32",
    "33",
    "36",
    "40",
    "42",
    "44",
    "48",
    "49",
    "50",
    "52",
    "54",
    "56",
    "60",
    "64",
    "72",
    "75",
    "80",
    "81",
    "84",
    "88",
    "90",
    "96",
    "100",
    "104",
    "108",
    "112",
    "120",
    "121",
    "125",
    "128",
    "144",
    "160",
    "168",
    "169",
    "176",
    "180",
    "192",
    "200",
    "243",
    "256",
    "343",
    "360",
    "400",
    "480",
    "512",
    "625",
    "729",
    "1000",
    "1024",
    "2048",
    "4096",
    "8192",
    "32x32",
    "64x64",
    "128x128",
    "100x100",
    "256x256",
    "96x32",
    "60x84",
    "17x64",
    "16x16x16",
    "32x32x32",
    "64x64x64",
    "100x100x100",
    "16x32x24",
    "50x60x70",
];

fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    for shape in SHAPES {
        for kind in ["c2c", "r2c", "c2r"] {
            for precision in ["sp", "dp"] {
                for placement in ["ip", "op"] {
                    lines.push(format!("{kind} {precision} {placement} {shape}"));
                }
            }
        }
    }
    lines
}

#[test]
#[ignore = "run on purpose, since it takes a quarter of an hour on two cores"]
fn many_plans_for_six_gpus_compile_nothing_if_their_packages_are_installed() {
    let library = library().expect("Debian's archive");
    let project = Project::new();
    let lines = lines();
    assert!(lines.len() > 1000, "{}", lines.len());
    project.write("plans.txt", &lines.join("\n"));
    let targets = PROCESSORS.join(",");
    dist(&project, "plans.txt", "o", &["--target", &targets, "--quiet"]).expect_code(0);

    let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
    let all: Vec<FftPlan> = plans(&texts);
    for arch in PROCESSORS {
        let package = project.path().join(format!("o/rocfft-kernels-{arch}_1.0.32-1_all.deb"));
        let root = tempfile::tempdir().unwrap();
        let with_package = root_with(&library, root.path(), &package);
        let programs = |library, installed| {
            let checked = with(library, arch, |options| check(&all, installed, options).unwrap());
            assert_eq!(checked.failures.len(), 0, "{arch}: {checked:?}");
            checked.programs
        };
        assert_eq!(programs(&with_package, InstalledCache::Own), 0, "{arch}");
        let compiled = programs(&library, InstalledCache::Nothing);
        assert!(compiled > 500, "{arch}: {compiled}");
    }
}
