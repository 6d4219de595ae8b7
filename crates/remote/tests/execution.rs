//! The client's calls, its identity, and how it takes permanent errors. The integration tests show
//! what a real service's faults cost.

#![cfg(feature = "execution")]

mod service;

use std::sync::Arc;
use std::time::Duration;

use gfxpack_compile::{
    Action, ActionOutcome, Cancel, Content, InputFile, InputRoot, RemoteError, RemoteWorkers,
};
use gfxpack_model::{Digest, Error};
use gfxpack_remote::{RemoteExecution, RemoteOptions};
use service::{MAX_BATCH, Running, Stand, object, start};

/// Far longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

fn options(running: &Running) -> RemoteOptions {
    let instance = running.stand.lock().instance.clone();
    RemoteOptions {
        address: format!("grpc://127.0.0.1:{}/{instance}", running.port).parse().unwrap(),
        jobs: 4,
        headers: Vec::new(),
        ca: None,
        identity: None,
        platform: vec![("OSFamily".into(), "linux".into()), ("Arch".into(), "x86_64".into())],
        cache_only: false,
        wait_limit: LONG,
    }
}

fn client(running: &Running) -> RemoteExecution {
    RemoteExecution::new(options(running)).unwrap()
}

fn file(path: &str, bytes: &[u8]) -> InputFile {
    InputFile {
        path: path.into(),
        digest: Digest::of(bytes),
        size: bytes.len() as u64,
        executable: false,
        content: Content::Bytes(bytes.into()),
    }
}

fn action(args: &[&str]) -> Action {
    let files = vec![file("src/k.cl", b"kernel"), file("lib/large", &[1; 300_000])];
    Action {
        arguments: args.iter().map(|&arg| arg.to_owned()).collect(),
        directory: "src",
        output: "o",
        root: Arc::new(InputRoot::new(files, Vec::new())),
        time_limit: LONG,
        name: args.join(" "),
        target: "gfx906".into(),
    }
}

fn run(client: &RemoteExecution, action: &Action) -> Result<ActionOutcome, RemoteError> {
    client.run(action, &Cancel::default())
}

/// The error that ends a build.
#[track_caller]
fn fatal(outcome: Result<ActionOutcome, RemoteError>) -> Error {
    match outcome {
        Err(RemoteError::Fatal(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_action_is_run_once_and_then_cached() {
    let stand = Stand::default();
    stand.lock().instance = "main/gpu".into();
    let running = start(&stand, None);
    let action = action(&["cc", "300000"]);
    for round in 0..2 {
        let outcome = run(&client(&running), &action).unwrap();
        assert_eq!(outcome.output.as_deref(), Some(&object(&action.arguments)[..]));
        assert_eq!((outcome.cached, stand.calls("Execute")), (round == 1, 1));
    }
    let state = stand.lock();
    let command = &state.runs[0];
    #[expect(deprecated, reason = "older servers read it there")]
    let platform = command.platform.as_ref().unwrap();
    let names: Vec<&str> = platform.properties.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Arch", "OSFamily"], "in the order of their names");
    assert_eq!(command.working_directory, "src");
    // The large file was sent as a stream, and no batch exceeds the limit.
    assert_eq!((state.calls["Write"], state.calls["Read"]), (1, 2));
    assert!(state.largest_batch <= MAX_BATCH as usize);
}

#[test]
fn a_time_limit_or_a_permanent_error_ends_an_action() {
    let stand = Stand::default();
    let running = start(&stand, None);
    stand.lock().ends.push_back(4);
    let timed_out = run(&client(&running), &action(&["cc", "k"]));
    assert!(matches!(timed_out, Err(RemoteError::TimedOut)), "{timed_out:?}");
    stand.lock().ends.extend([13; 5]);
    let lost = run(&client(&running), &action(&["cc", "k"])).unwrap_err();
    let RemoteError::Lost(reason) = lost else { panic!("{lost:?}") };
    assert!(reason.contains("as asked for"), "{reason}");
    // An argument that the server refuses will be refused again.
    let before = stand.calls("Execute");
    stand.lock().ends.push_back(3);
    assert!(matches!(run(&client(&running), &action(&["cc"])), Err(RemoteError::Lost(_))));
    assert_eq!(stand.calls("Execute"), before + 1);
}

#[test]
fn a_missing_capability_is_reported_with_a_hint() {
    let hint = |error: Error| error.hint().unwrap().to_owned();
    let stand = Stand::default();
    let running = start(&stand, None);
    stand.lock().token = Some("Bearer secret");
    let error = fatal(run(&client(&running), &action(&["cc"])));
    assert!(hint(error).contains("--remote-header"));
    let headers = vec![("Authorization".to_owned(), "Bearer secret".to_owned())];
    let known = RemoteExecution::new(RemoteOptions { headers, ..options(&running) }).unwrap();
    run(&known, &action(&["cc"])).unwrap();
    let elsewhere = format!("grpc://127.0.0.1:{}/nowhere", running.port).parse().unwrap();
    let options = |headers| RemoteOptions { headers, ..options(&running) };
    let headers = vec![("authorization".to_owned(), "Bearer secret".to_owned())];
    let wrong = RemoteOptions { address: elsewhere, ..options(headers.clone()) };
    let error = fatal(run(&RemoteExecution::new(wrong).unwrap(), &action(&["cc"])));
    assert!(hint(error).contains("instance"));
    stand.lock().no_sha256 = true;
    let client = RemoteExecution::new(options(headers)).unwrap();
    let error = fatal(run(&client, &action(&["cc"])));
    assert!(error.to_string().contains("SHA-256"), "{error}");
    let bad = vec![("no good".to_owned(), "x".to_owned())];
    assert!(RemoteExecution::new(options(bad)).is_err());
}

#[test]
fn client_and_server_authenticate_by_certificates() {
    use tonic::transport::{Certificate, Identity, ServerTlsConfig};
    let authority = rcgen::generate_simple_self_signed(["ca".to_owned()]).unwrap();
    let ours = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let identity = Identity::from_pem(ours.cert.pem(), ours.signing_key.serialize_pem());
    let config = ServerTlsConfig::new()
        .identity(identity)
        .client_ca_root(Certificate::from_pem(ours.cert.pem()));
    let running = start(&Stand::default(), Some(config));
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (ca, key) =
        (write("cert.pem", ours.cert.pem()), write("key.pem", ours.signing_key.serialize_pem()));
    let stranger = write("other.pem", authority.cert.pem());
    let connect = |ca, identity| {
        let address = format!("grpcs://127.0.0.1:{}", running.port).parse().unwrap();
        let wait_limit = Duration::ZERO;
        let options = RemoteOptions { address, ca, identity, wait_limit, ..options(&running) };
        let client = RemoteExecution::new(options);
        run(&client.unwrap(), &action(&["cc"]))
    };
    let identity = Some((ca.clone(), key));
    assert_eq!(connect(Some(ca.clone()), identity.clone()).unwrap().exit_code, 0);
    assert!(connect(Some(ca), None).is_err(), "the server does not know us");
    assert!(connect(Some(stranger), identity.clone()).is_err(), "we do not know the server");
    assert!(connect(None, identity).is_err(), "nor does the system");
}
