//! Objects shared between machines: a second one compiles nothing, what is
//! damaged is dropped, and a cache that is down ends no build.

use std::fs;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};

use gfxpack_tests::casd::free_port;
use gfxpack_tests::project::{Project, Run, command, finish, workspace};

const KERNELS: usize = 5;

/// Who we are to a service of S3's interface, and what proves it.
const S3_KEY: (&str, &str) = ("somebody", "a-secret-of-somebody");

/// Builds on a "machine": with a cache of its own.
fn build(project: &Project, machine: &str, more: &[&str]) -> Run {
    let arguments = ["--target", "gfx906_60", "--message-format", "json", "--out", machine];
    let mut command = project.command(&["build", "--manifest", "kernels.toml"]);
    command.args(arguments).args(more);
    command.env("GFXPACK_CACHE_DIR", project.path().join(format!("cache-{machine}")));
    command.env("AWS_ACCESS_KEY_ID", S3_KEY.0).env("AWS_SECRET_ACCESS_KEY", S3_KEY.1);
    finish(command)
}

fn kdb(project: &Project, machine: &str) -> Vec<u8> {
    fs::read(project.path().join(machine).join("kdb/gfx906_60.kdb")).unwrap()
}

/// How many kernels were compiled, and how many came from the shared cache.
fn counts(run: &Run) -> (u64, u64) {
    let finished = &run.of_type("build-finished")[0];
    (finished["compiled"].as_u64().unwrap(), finished["shared"].as_u64().unwrap())
}

/// What a shared cache is for, whatever it is.
fn is_shared(project: &Project, url: &str) {
    let first = build(project, "first", &["--cache-remote", url]).expect_code(0);
    assert_eq!(counts(&first), (KERNELS as u64, 0), "{}", first.stdout);
    assert_eq!(first.of_type("warning"), Vec::<serde_json::Value>::new());
    let second = build(project, "second", &["--cache-remote", url]).expect_code(0);
    assert_eq!(counts(&second), (0, KERNELS as u64), "{}", second.stdout);
    assert!(kdb(project, "first") == kdb(project, "second"));
    // What came once is there from now on.
    let again = build(project, "second", &[]).expect_code(0);
    assert_eq!(counts(&again), (0, 0));
}

fn directory(project: &Project) -> String {
    format!("file://{}", project.path().join("shared").display())
}

#[test]
fn a_directory_is_shared_and_damage_in_it_is_dropped() {
    let project = Project::small();
    let url = directory(&project);
    is_shared(&project, &url);
    let entries = project.tree("shared/v1/objects");
    assert_eq!(entries.len(), KERNELS);
    let path = |name: &str| project.path().join("shared/v1/objects").join(name);
    // Other bytes, too few, and a sound object that is for another job.
    let (first, second, third) = (&entries[0], &entries[1], &entries[2]);
    let mut damaged = first.1.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(path(&first.0), damaged).unwrap();
    fs::write(path(&second.0), &second.1[..100]).unwrap();
    fs::write(path(&third.0), &entries[3].1).unwrap();
    let run = build(&project, "third", &["--cache-remote", &url]).expect_code(0);
    assert_eq!(counts(&run), (3, KERNELS as u64 - 3), "{}", run.stdout);
    assert!(kdb(&project, "first") == kdb(&project, "third"));
    let warnings = run.of_type("warning");
    assert_eq!(warnings.len(), 1, "once: {warnings:?}");
    assert!(warnings[0]["message"].as_str().unwrap().contains("dropped"), "{warnings:?}");
    // What was compiled in their place is shared.
    let run = build(&project, "fourth", &["--cache-remote", &url]).expect_code(0);
    assert_eq!(counts(&run), (0, KERNELS as u64));
}

#[test]
fn what_is_given_is_the_users_choice() {
    let project = Project::small();
    let url = directory(&project);
    let shared = || {
        let dir = project.path().join("shared/v1/objects");
        if dir.exists() { project.tree("shared/v1/objects").len() } else { 0 }
    };
    build(&project, "m", &["--cache-remote", &url, "--cache-upload", "never"]).expect_code(0);
    assert_eq!(shared(), 0);
    // Nothing is compiled any more, so there is nothing to give.
    build(&project, "m", &["--cache-remote", &url]).expect_code(0);
    assert_eq!(shared(), 0);
    build(&project, "m", &["--cache-remote", &url, "--cache-upload", "always"]).expect_code(0);
    assert_eq!(shared(), KERNELS);
}

#[test]
fn a_cache_that_is_down_ends_no_build() {
    let project = Project::small();
    let nobody = format!("webdav://127.0.0.1:{}/", free_port());
    let file = project.write("plain.txt", "no directory");
    let below_a_file = format!("file://{}/shared", file.display());
    for (machine, url) in [("nobody", nobody.as_str()), ("file", &below_a_file)] {
        let run = build(&project, machine, &["--cache-remote", url]).expect_code(0);
        assert_eq!(counts(&run), (KERNELS as u64, 0));
        let warnings = run.of_type("warning");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0]["message"].as_str().unwrap().contains(url), "{warnings:?}");
    }
    let run = build(&project, "wrong", &["--cache-remote", "ftp://host/"]).expect_code(2);
    assert!(run.of_type("error")[0]["hint"].as_str().unwrap().contains("webdav://"));
}

/// A server that ends with this value.
struct Server(Child);

impl Server {
    fn start(mut server: std::process::Command, port: u16) -> Self {
        server.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut server = Self(server.spawn().expect("it starts"));
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(matches!(server.0.try_wait(), Ok(None)), "the server ended");
            std::thread::yield_now();
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn webdav_is_shared() {
    let project = Project::small();
    let port = free_port();
    fs::create_dir(project.path().join("dav")).unwrap();
    let venv: &Path = &workspace().join("target/tools/webdav");
    let mut server = command(venv.join("bin/wsgidav"));
    server
        .args(["--host", "127.0.0.1", "--port", &port.to_string(), "--auth", "anonymous"])
        .arg("--root")
        .arg(project.path().join("dav"))
        .args(["--no-config", "--quiet"]);
    let _server = Server::start(server, port);
    is_shared(&project, &format!("webdav://127.0.0.1:{port}/team"));
    assert_eq!(project.tree("dav/team/v1/objects").len(), KERNELS);
}

#[test]
fn redis_is_shared() {
    let project = Project::small();
    let port = free_port();
    let mut server = command("redis-server");
    server
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .arg("--dir")
        .arg(project.path());
    let _server = Server::start(server, port);
    is_shared(&project, &format!("redis://127.0.0.1:{port}/1"));
}

#[test]
fn s3_is_shared_with_whoever_has_the_key() {
    let project = Project::small();
    let port = free_port();
    fs::create_dir_all(project.path().join("s3/bucket")).unwrap();
    let mut server = command(workspace().join("target/tools/rclone/rclone"));
    server.args(["serve", "s3", "--config", "", "--vfs-cache-mode", "off"]);
    server.args(["--auth-key", &format!("{},{}", S3_KEY.0, S3_KEY.1)]);
    server.args(["--addr", &format!("127.0.0.1:{port}")]).arg(project.path().join("s3"));
    let _server = Server::start(server, port);
    let place = format!("endpoint=http://127.0.0.1:{port}&region=us-east-1");
    is_shared(&project, &format!("s3://bucket/team?{place}"));
    assert_eq!(project.tree("s3/bucket/team/v1/objects").len(), KERNELS);
    let stranger = format!("s3://bucket/team?{place}&access_key_id=x&secret_access_key=y");
    let run = build(&project, "stranger", &["--cache-remote", &stranger]).expect_code(0);
    assert_eq!(counts(&run), (KERNELS as u64, 0));
    let warnings = run.of_type("warning");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(!run.stdout.contains("secret_access_key"), "{warnings:?}");
}

#[test]
fn google_cloud_storage_is_shared() {
    let project = Project::small();
    let port = free_port();
    let mut server = command(workspace().join("target/tools/gcs/bin/gcp-storage-emulator"));
    server.arg("--data-dir").arg(project.path().join("gcs"));
    server.args(["start", "--host", "127.0.0.1", "--port", &port.to_string()]);
    server.args(["--default-bucket", "bucket", "--quiet"]);
    let _server = Server::start(server, port);
    let place = format!("endpoint=http://127.0.0.1:{port}&skip_signature=true");
    is_shared(&project, &format!("gs://bucket/team?{place}"));
    let kept = project.tree("gcs/.cloudstorage/bucket/team/v1/objects");
    assert_eq!(kept.len(), KERNELS);
}
