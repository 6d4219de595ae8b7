//! Several processes with one cache: each key is compiled once, nothing is
//! lost, and a process that dies blocks no other.

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Barrier;
use std::time::Duration;

use gfxpack_runtime::{Origin, UserDirectory};

use crate::support::*;

const PROCESSES: usize = 8;
const THREADS: usize = 4;
const KEYS: usize = 200;

struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// The numbers up to `count` in an order that `seed` determines.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut numbers: Vec<usize> = (0..count).collect();
    for index in (1..count).rev() {
        numbers.swap(index, noise.below(index + 1));
    }
    numbers
}

/// Appends one byte to the key's file, once per compilation.
fn count_compile(directory: &Path, number: usize) {
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(directory.join(number.to_string()))
        .unwrap();
    file.write_all(b"x").unwrap();
}

fn compiled(directory: &Path, number: usize) -> u64 {
    std::fs::metadata(directory.join(number.to_string())).map_or(0, |metadata| metadata.len())
}

fn start(machine: &Machine, test: &str, seed: usize, keys: usize) -> Child {
    let root = machine.root.to_str().unwrap();
    spawn(&mut child(test, &[root, &seed.to_string(), &keys.to_string()]))
}

fn child_cache(root: &Path) -> Cache {
    let (mut config, warnings) =
        config(&root.join("system"), UserDirectory::Dir(root.join("user")));
    // Test machines may have slow disks, to which all processes write at once.
    config.limits.busy_wait = Duration::from_secs(120);
    Cache::open((config, warnings))
}

/// Requests every key, in a different order in each thread, and reports each to
/// the parent in one line.
#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_that_requests_all_keys() {
    let arguments = child_arguments();
    let root = PathBuf::from(&arguments[0]);
    let seed: u64 = arguments[1].parse().unwrap();
    let keys: usize = arguments[2].parse().unwrap();
    let counts = root.join("counts");
    let cache = child_cache(&root);
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let (cache, counts, barrier) = (&cache, &counts, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for number in shuffled(keys, seed * 100 + thread + 1) {
                    let compile = || {
                        count_compile(counts, number);
                        Ok::<_, Infallible>(object(number))
                    };
                    let kernel = cache.cache.get_or_compile(&numbered(number), compile).unwrap();
                    assert!(kernel.code_object[..] == object(number)[..]);
                    assert!(kernel.not_stored.is_none(), "{:?}", kernel.not_stored);
                    if kernel.origin == Origin::Compiled {
                        print_line("compiled");
                    }
                }
            });
        }
    });
    let texts: Vec<String> = cache.warnings.texts();
    assert!(texts.iter().all(|text| text.contains("Missing system database")), "{texts:?}");
}

#[track_caller]
fn check_all(machine: &Machine, keys: usize, compiles: std::ops::RangeInclusive<u64>) {
    assert_whole(&machine.ukdb());
    let cache = machine.open();
    let counts = machine.root.join("counts");
    let mut total = 0;
    for number in 0..keys {
        assert_eq!(cache.layer(number), Some("user"), "kernel {number} is not lost");
        let times = compiled(&counts, number);
        assert!(times >= 1, "kernel {number} came from somewhere");
        total += times;
    }
    assert!(compiles.contains(&total), "{total} compiles of {keys} kernels");
    assert_eq!(listing(&machine.user)[1..], [USER_NAME], "nothing was moved aside");
}

#[test]
fn each_key_is_compiled_once() {
    let machine = Machine::new(0);
    std::fs::create_dir(machine.root.join("counts")).unwrap();
    let test = "processes::child_process_that_requests_all_keys";
    let children: Vec<Child> =
        (0..PROCESSES).map(|seed| start(&machine, test, seed, KEYS)).collect();
    for child in children {
        finish(child);
    }
    check_all(&machine, KEYS, KEYS as u64..=KEYS as u64);
    assert_eq!(listing(&machine.user.join(".gfxpack-locks")), Vec::<String>::new());
}

#[test]
fn killed_processes_lose_only_their_own_work() {
    const SMALL: usize = 200;
    const KILLED: usize = 5;
    let machine = Machine::new(0);
    std::fs::create_dir(machine.root.join("counts")).unwrap();
    let test = "processes::child_process_that_requests_all_keys";
    let others: Vec<Child> = (100..103).map(|seed| start(&machine, test, seed, SMALL)).collect();
    let mut noise = Noise(0x5851_f42d_4c95_7f2d);
    for seed in 0..KILLED {
        let mut victim = start(&machine, test, seed, SMALL);
        let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        // Dies during its work, or right after it.
        let at = noise.below(30);
        drop(lines.map(Result::unwrap).filter(|line| line == "compiled").nth(at));
        victim.kill().unwrap();
        victim.wait().unwrap();
    }
    for child in others {
        finish(child);
    }
    // Each thread of the killed processes may have been compiling a kernel.
    check_all(&machine, SMALL, SMALL as u64..=(SMALL + KILLED * THREADS) as u64);
}

/// Holds the key forever, like a compiler that hangs.
#[test]
#[ignore = "the child of another test, started in a process of its own"]
fn child_process_that_never_finishes() {
    let cache = child_cache(Path::new(&child_arguments()[0]));
    let hangs = || {
        print_line("compiling");
        std::io::stdin().read_exact(&mut [0]).unwrap();
        Ok::<_, Infallible>(object(0))
    };
    cache.cache.get_or_compile(&numbered(0), hangs).unwrap();
}

fn start_hanging(machine: &Machine) -> (Child, impl Sized) {
    let mut holder = start(machine, "processes::child_process_that_never_finishes", 0, 1);
    let output = await_line(&mut holder, "compiling");
    (holder, output)
}

#[test]
fn a_dead_lock_holder_does_not_block() {
    let machine = Machine::new(0);
    let (mut holder, _output) = start_hanging(&machine);
    let cache = machine.open();
    // This would take minutes if the holder's lock outlived it.
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| cache.kernel(0));
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert_eq!(waiter.join().unwrap().origin, Origin::Compiled);
    });
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
}

#[test]
fn the_wait_for_a_hung_lock_holder_is_limited() {
    let machine = Machine::new(0);
    let (mut holder, _output) = start_hanging(&machine);
    let (mut config, warnings) = machine.config();
    config.limits.compile_wait = Duration::from_millis(50);
    let cache = Cache::open((config, warnings));
    assert_eq!(cache.kernel(0).origin, Origin::Compiled);
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
    // The holder continues, and replaces the kernel by the same.
    holder.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(holder.wait().unwrap().success());
    assert_eq!(cache.kernel(0).origin, Origin::User(machine.ukdb()));
    assert_whole(&machine.ukdb());
}

#[test]
fn a_process_that_waited_finds_what_the_other_compiled() {
    let machine = Machine::new(0);
    let (mut holder, _output) = start_hanging(&machine);
    let cache = machine.open();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let never = || -> Result<Vec<u8>, Infallible> { panic!("the other one compiles it") };
            cache.cache.get_or_compile(&numbered(0), never).unwrap()
        });
        holder.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(holder.wait().unwrap().success());
        let kernel = waiter.join().unwrap();
        assert_eq!(kernel.origin, Origin::User(machine.ukdb()));
    });
}

#[test]
fn a_file_that_one_cache_moved_aside_is_closed_by_the_others() {
    let machine = Machine::new(0);
    let (first, second) = (machine.open(), machine.open());
    for number in 0..4 {
        first.kernel(number);
        second.kernel(number);
    }
    std::fs::write(machine.root.join("damaged"), [7; 5000]).unwrap();
    std::fs::rename(machine.root.join("damaged"), machine.ukdb()).unwrap();
    // Both have connections to the file that was moved.
    assert_eq!(first.kernel(0).origin, Origin::Compiled);
    assert_eq!(second.kernel(1).origin, Origin::Compiled);
    assert_eq!(first.kernel(1).origin, Origin::User(machine.ukdb()));
    assert_eq!(second.kernel(0).origin, Origin::User(machine.ukdb()));
    assert_whole(&machine.ukdb());
}
