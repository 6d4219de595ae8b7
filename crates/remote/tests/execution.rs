//! Tests the client against a service that misbehaves on request.

#![cfg(feature = "execution")]

mod service;

use std::sync::Arc;
use std::time::Duration;

use gfxpack_compile::{
    Action, ActionOutcome, Cancel, Content, InputFile, InputRoot, RemoteError, RemoteWorkers,
};
use gfxpack_model::{Digest, Error};
use gfxpack_remote::{RemoteExecution, RemoteOptions};
use service::{Fault, MAX_BATCH, Running, Stand, object, start};

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

/// Runs one action against a service with these faults, which must succeed. Returns how often the
/// action was executed.
#[track_caller]
fn survives(faults: &[Fault]) -> usize {
    let stand = Stand::default();
    stand.lock().faults = faults.iter().cloned().collect();
    let running = start(&stand, None);
    let action = action(&["cc", "k"]);
    let outcome = run(&client(&running), &action).unwrap();
    assert_eq!(outcome.exit_code, 0);
    assert_eq!(outcome.output.as_deref(), Some(&object(&action.arguments)[..]));
    assert!(stand.lock().faults.is_empty(), "every fault came to pass");
    stand.calls("Execute")
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
fn inputs_are_sent_once_for_all_actions() {
    let stand = Stand::default();
    let running = start(&stand, None);
    let client = client(&running);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let client = &client;
            scope.spawn(move || {
                let action = action(&["cc", &format!("-D{number}")]);
                let outcome = run(client, &action).unwrap();
                assert_eq!(outcome.output.as_deref(), Some(&object(&action.arguments)[..]));
            });
        }
    });
    assert_eq!((stand.calls("Write"), stand.calls("FindMissingBlobs")), (1, 1));
    assert_eq!((stand.calls("Execute"), stand.calls("GetCapabilities")), (16, 1));
}

#[test]
fn a_lost_worker_is_replaced() {
    // Aborted, unavailable, out of resources, internal.
    for code in [10, 14, 8, 13] {
        assert_eq!(survives(&[Fault::Ends(code)]), 2, "{code}");
    }
    assert_eq!(survives(&[Fault::Ends(14), Fault::Ends(14), Fault::Ends(10)]), 4);
}

#[test]
fn an_execution_survives_a_broken_connection() {
    assert_eq!(survives(&[Fault::Breaks]), 1, "it is waited for");
    assert_eq!(survives(&[Fault::Breaks, Fault::Call("WaitExecution", 14)]), 1);
    assert_eq!(survives(&[Fault::Breaks, Fault::Forgets]), 2, "a new server knows nothing of it");
}

#[test]
fn failed_calls_are_repeated() {
    for call in [
        "GetCapabilities",
        "GetActionResult",
        "FindMissingBlobs",
        "BatchUpdateBlobs",
        "Write",
        "BatchReadBlobs",
    ] {
        assert_eq!(survives(&[Fault::Call(call, 14), Fault::Call(call, 8)]), 1, "{call}");
    }
    assert_eq!(survives(&[Fault::Call("Execute", 14)]), 1 + 1);
}

#[test]
fn missing_inputs_are_sent_again() {
    let stand = Stand::default();
    let running = start(&stand, None);
    let client = client(&running);
    run(&client, &action(&["cc", "first"])).unwrap();
    stand.lock().faults.push_back(Fault::LosesInputs);
    let outcome = run(&client, &action(&["cc", "second"])).unwrap();
    assert_eq!((outcome.exit_code, stand.calls("Execute")), (0, 3));
    assert_eq!(stand.calls("Write"), 2);
}

#[test]
fn received_blobs_are_hashed() {
    assert_eq!(survives(&[Fault::Corrupts]), 1, "another try brings the right bytes");
    let corrupts: Vec<Fault> = vec![Fault::Corrupts; 5];
    assert_eq!(survives(&corrupts), 2, "what stays wrong is made anew");
}

#[test]
fn a_time_limit_or_a_permanent_error_ends_an_action() {
    let stand = Stand::default();
    let running = start(&stand, None);
    stand.lock().faults.push_back(Fault::Ends(4));
    let timed_out = run(&client(&running), &action(&["cc", "k"]));
    assert!(matches!(timed_out, Err(RemoteError::TimedOut)), "{timed_out:?}");
    stand.lock().faults.extend(vec![Fault::Ends(13); 5]);
    let lost = run(&client(&running), &action(&["cc", "k"])).unwrap_err();
    let RemoteError::Lost(reason) = lost else { panic!("{lost:?}") };
    assert!(reason.contains("as asked for"), "{reason}");
    // An argument that the server refuses will be refused again.
    let before = stand.calls("Execute");
    stand.lock().faults.push_back(Fault::Ends(3));
    assert!(matches!(run(&client(&running), &action(&["cc"])), Err(RemoteError::Lost(_))));
    assert_eq!(stand.calls("Execute"), before + 1);
}

#[test]
fn an_absent_server_is_waited_for_up_to_the_limit() {
    let running = start(&Stand::default(), None);
    let impatient = RemoteOptions { wait_limit: Duration::from_millis(300), ..options(&running) };
    let client = RemoteExecution::new(impatient).unwrap();
    run(&client, &action(&["cc", "1"])).unwrap();
    drop(running);
    let error = fatal(run(&client, &action(&["cc", "2"])));
    assert!(error.to_string().contains("grpc://127.0.0.1"), "{error}");
}

#[test]
fn cache_only_takes_nothing_but_cached_results() {
    let stand = Stand::default();
    let running = start(&stand, None);
    let cache_only =
        || RemoteExecution::new(RemoteOptions { cache_only: true, ..options(&running) }).unwrap();
    let action = action(&["cc", "k"]);
    assert!(matches!(run(&cache_only(), &action), Err(RemoteError::NotCached)));
    run(&client(&running), &action).unwrap();
    assert!(run(&cache_only(), &action).unwrap().cached);
    assert_eq!(stand.calls("Execute"), 1);
}

#[test]
fn cancelling_also_cancels_the_operation() {
    let stand = Stand::default();
    let running = start(&stand, None);
    stand.lock().faults.push_back(Fault::Hangs);
    let (client, cancel) = (client(&running), Cancel::default());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.run(&action(&["cc", "k"]), &cancel));
        while stand.calls("Execute") == 0 {
            std::thread::yield_now();
        }
        cancel.cancel();
        assert!(fatal(waiting.join().unwrap()).is_interrupted());
    });
    // The operation's name may not have arrived before it was cancelled.
    assert!(stand.lock().cancelled.iter().all(|name| name == "operations/1"));
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
