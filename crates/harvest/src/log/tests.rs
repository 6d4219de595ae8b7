//! Lines as written by releases of MIOpen, and arbitrary bytes in arbitrary
//! pieces.

use proptest::prelude::*;

use super::*;

type Told = Vec<(u64, Result<(Event, KernelKey), LineError>)>;

fn parsed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Told {
    let mut parsed = Vec::new();
    let mut each = |number, line: &[u8], cut| {
        for (_, message) in Message::in_line(line, cut) {
            parsed.push((number, message.map(|message| (message.event, message.key()))));
        }
    };
    let mut lines = Lines::with(Message::MARK);
    for piece in pieces {
        lines.push(piece, &mut each);
    }
    lines.finish(&mut each);
    parsed
}

#[track_caller]
fn check(line: &str, event: Event, name: &str, args: &str) {
    let key = KernelKey { kernel_name: name.to_owned(), kernel_args: args.to_owned() };
    assert_eq!(parsed([line.as_bytes()]), [(1, Ok((event, key)))], "{line}");
}

#[track_caller]
fn refused(line: &str, error: LineError) {
    assert_eq!(parsed([line.as_bytes()]), [(1, Err(error.clone()))], "{line}");
    assert!(!error.to_string().is_empty() && !error.hint.is_empty());
}

const ARGS: &str = " -DA=1 -mcpu=gfx906";

#[test]
fn each_event_is_parsed() {
    for (text, event) in [
        ("[LoadBinary] Loading binary for: ", Event::Asked),
        ("[LoadBinary] Successfully loaded binary for: ", Event::Found),
        ("[LoadBinary] Sucessfully loaded binary for: ", Event::Found),
        ("[LoadBinary] Unable to load binary for: ", Event::Missed),
        ("[SaveBinary] Saving binary for: ", Event::Saved),
    ] {
        let line = format!("MIOpen(HIP): Info2 {text}\"a.cl.o\"; args: {ARGS}\n");
        check(&line, event, "a.cl.o", ARGS);
    }
}

#[test]
fn names_are_parsed_in_the_styles_of_all_releases() {
    let check = |text: &str, name: &str| {
        let line = format!("MIOpen(HIP): Info2 [LoadBinary] Loading binary for: {text}{ARGS}\n");
        check(&line, Event::Asked, name, ARGS);
    };
    check("\"a.cpp.o\"; args: ", "a.cpp.o");
    check("a.cpp.o; args: ", "a.cpp.o");
    check("a.cpp ;args: ", "a.cpp.o");
    check("\"a b.s.o\"; args: ", "a b.s.o");
    check("\"a.cl.obj\"; args: ", "a.cl.obj");
    let md5 = "93b885adfe0da089cdf634904fd59f71.o";
    check(&format!("{md5} size=1234; args: "), md5);
    check("a.cl.o size=x; args: ", "a.cl.o size=x");
}

#[test]
fn messages_in_quotes_are_taken_and_cut_devices_are_not() {
    let message =
        format!("MIOpen(HIP): I [LoadBinary] Unable to load binary for: \"a\"; args: {ARGS}");
    for (before, between, after) in [
        ("['", "\\n', '", "\\n']"),
        ("b'", "\\r\\n", "\\r\\n'"),
        ("echo '", "'\nINFO:root:'", "'"),
        ("> `", "`\n> `", "`"),
    ] {
        let text = format!("{before}{message}{between}{message}{after}");
        let told = parsed([text.as_bytes()]);
        assert_eq!(told.len(), 2, "{text}");
        assert!(told.iter().all(|(_, one)| one.as_ref().unwrap().1.kernel_args == ARGS), "{text}");
    }
    // Lists in JSON, as log services export them.
    let json = serde_json::to_string(&[("1", &message), ("2", &message)]).unwrap();
    assert_eq!(parsed([json.as_bytes()]).iter().filter(|(_, one)| one.is_ok()).count(), 2);
    refused(&message.replace("gfx906", "gfx103"), LineError::DEVICE);
    refused(&message.replace('"', "&quot;"), LineError::NAME);
    refused(&format!("'{}\\n'", message.replace("A=1", "A=\\\\1")), LineError::DEVICE);
}

#[test]
fn any_prefix_before_a_message_is_accepted() {
    for begin in [
        "MIOpen(HIP): Info2",
        "MIOpen(OpenCL): Info2",
        "140300175522944 MIOpen(HIP): Info2",
        "node-17 4242 140300175522944 MIOpen(HIP): Info2",
        "   0.125 MIOpen(HIP): Info2",
        "MIOpen(HIP)   0.125: Info2",
        "MIOpen(HIP)(2024-10-01 12:00:00): Info2",
        "MIOpen(HIP): (Tue Oct  1 12:00:00 2024) Info2",
        "MIOpen(HIP): Trace",
        "2024-10-01T12:00:00Z INFO [worker 3] - MIOpen(HIP): Info2",
        "\u{1b}[32mMIOpen(HIP): Info2",
    ] {
        for end in ["", "\n", "\r\n"] {
            let line =
                format!("{begin} [LoadBinary] Loading binary for: \"a.cl.o\"; args: {ARGS}{end}");
            check(&line, Event::Asked, "a.cl.o", ARGS);
        }
    }
}

#[test]
fn arguments_are_kept_byte_for_byte() {
    for args in [
        " -mcpu=gfx90a",
        "-DA -mcpu=gfx1030",
        "   -DA=\"x y\"  -DB  -mcpu=gfx906",
        " -mcpu=gfx900 -DX -mcpu=gfx906",
        " -DX=; args: 1 -mcpu=gfx906",
        " -DX= ;args: 1 -mcpu=gfx906",
        " -DÜ=ß -mcpu=gfx906",
    ] {
        for name in ["\"a.cl.o\"; args: ", "a.cl ;args: "] {
            let line = format!("MIOpen(HIP): Info2 [LoadBinary] Loading binary for: {name}{args}");
            check(&line, Event::Asked, "a.cl.o", args);
        }
    }
    let mlir = "MIOpen(HIP): Info2 [LoadBinary] Loading binary for: \"a.mlir.o\"; args:  --x 1";
    check(mlir, Event::Asked, "a.mlir.o", " --x 1");
}

#[test]
fn the_device_is_the_last_one_named_with_whole_features() {
    for device in ["gfx90a", "gfx1100", "gfx90a:sramecc+:xnack-", "gfx11-generic", "gfx9-4-generic"]
    {
        assert_eq!(split_device(&format!(" -mcpu=gfx900 -DX -mcpu={device}")), Some(device));
    }
    for cut in ["gfx90a:", "gfx90a:sramecc", "gfx90a:sramecc+:xn", "gfx11-gene", "gfx-generic"] {
        assert_eq!(split_device(&format!(" -mcpu={cut}")), None, "{cut}");
    }
    assert_eq!(split_device(" --mlir"), None);
}

#[test]
fn other_lines_are_skipped_and_counted() {
    let other = "\
Step 1
MIOpen(HIP): Info [get_device_name] Raw device name: gfx906:sramecc+:xnack-
MIOpen(HIP): Info2 [Prepare] SELECT kernel_blob FROM kern_db WHERE (kernel_name = 'a.cl.o') AND \
(kernel_args = ' -mcpu=gfx906');
MIOpen(HIP): Info2 [LoadBinary]
MIOpen(HIP): Info2 [LoadBinary] Something else for: \"a.cl.o\"; args:  -mcpu=gfx906
MIOpen(HIP): Info2 [SaveBinary] Loading binary for: \"a.cl.o\"; args:  -mcpu=gfx906
MIOpen(HIP): Info2 [ReloadBinary] Loading binary for: \"a.cl.o\"; args:  -mcpu=gfx906
MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 128
[LoadBinary] Loading binary for: \"a.cl.o\"; args:  -mcpu=gfx906
MIOpen(HIP [LoadBinary] Loading binary for: \"a.cl.o\"; args:  -mcpu=gfx906

";
    assert_eq!(parsed([other.as_bytes()]), []);
    let line = format!("MIOpen(HIP): Info2 [SaveBinary] Saving binary for: a.s.o; args: {ARGS}");
    let key = KernelKey::for_source("a.s", " -DA=1", "gfx906");
    let after = other.lines().count() as u64 + 1;
    let expected = [(after, Ok((Event::Saved, key)))];
    assert_eq!(parsed([other.as_bytes(), line.as_bytes()]), expected);
}

#[test]
fn damaged_lines_are_errors() {
    let line = |text: &str| format!("MIOpen(HIP): Info2 [LoadBinary] Loading binary for: {text}\n");
    refused(&line(""), LineError::ARGS);
    refused(&line("\"a.cl.o\""), LineError::ARGS);
    refused(&line("\"a.cl.o\"; args:"), LineError::ARGS);
    refused(&line("\"a.cl.o\"; args:  -DA=1"), LineError::DEVICE);
    refused(&line("\"a.cl.o\"; args:  -DA=1 -mcpu="), LineError::DEVICE);
    refused(&line("\"a.cl.o\"; args:  -DA=1 -mcpu=gfx9"), LineError::DEVICE);
    refused(&line("\"a.cl.o\"; args:  -DA=1 -mcpu=gfx906 -DB"), LineError::DEVICE);
    refused(&line("\"\"; args:  -mcpu=gfx906"), LineError::NAME);
    refused(&line("\"a.cl.o; args:  -mcpu=gfx906"), LineError::NAME);
    refused(&line("\"../a.cl.o\"; args:  -mcpu=gfx906"), LineError::NAME);
    refused(&line("\"a\\\"b.cl.o\"; args:  -mcpu=gfx906"), LineError::NAME);
    let mut bytes = line("\"a.cl.o\"; args:  -mcpu=gfx906").into_bytes();
    bytes[70] = 0xff;
    assert_eq!(parsed([&bytes[..]]), [(1, Err(LineError::NOT_UTF8))]);
    let cut = line("\"a.cl.o\"; args:  -DA=1");
    assert_eq!(Message::in_line(cut.as_bytes(), true)[0].1, Err(LineError::too_long()));
}

#[test]
fn interleaved_lines_never_give_a_wrong_key() {
    let message = "MIOpen(HIP): Info2 [LoadBinary] Loading binary for: \"a.cl.o\"; args: ";
    let key = KernelKey::for_source("a.cl", " -DA=1", "gfx906");
    let whole = || (1, Ok((Event::Asked, key.clone())));
    let spoiled = || (1, Err(LineError::INTERLEAVED));
    for between in ["", " ", "12345 "] {
        let line = format!("{message}{ARGS}{between}{message}{ARGS}\n");
        assert_eq!(parsed([line.as_bytes()]), [spoiled(), whole()], "{line}");
    }
    let line = format!("{message} -DA=MIOpen(HIP): Info2 [Prepare] SELECT 1\n");
    assert_eq!(parsed([line.as_bytes()]), [spoiled()]);
    let line = format!("MIOpen(HIP): Info2 [Prep{message}{ARGS}\n");
    assert_eq!(parsed([line.as_bytes()]), [whole()]);
}

/// Text like that of a log, some of it broken.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"MIOpen(HIP): ",
        b"Info2 ",
        b"[LoadBinary] ",
        b"[SaveBinary] ",
        b"Loading binary for: ",
        b"Successfully loaded binary for: ",
        b"Unable to load binary for: ",
        b"Saving binary for: ",
        b"\"a.cl.o\"",
        b"a.cl",
        b"; args: ",
        b" ;args: ",
        b" -DX=1",
        b" -mcpu=gfx906",
        b"\n",
        b"\r\n",
        b"\r",
        b"\x1b[33m",
        b"\x1b]0;",
        b"^[[0m",
        b"{\"log\":\"",
        b"\\n\"}",
        b"\\\"",
        b"\xef\xbb\xbf",
        b"\0",
    ];
    prop_oneof![
        9 => proptest::sample::select(words).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..9),
    ]
}

proptest! {
    #[test]
    fn a_key_is_parsed_as_it_was_written(
        name in "[A-Za-z_][A-Za-z0-9_. ]{0,30}\\.(cl|cpp|s)\\.o",
        options in "( [-A-Za-z0-9=_,\"]{0,20}){0,8}",
        device in "gfx([02-9a-f][0-9a-f]{2}|1[0-9a-f]{3})",
        before in "[^\r\n\u{0}]{0,12}",
        quoted in any::<bool>(),
    ) {
        // Colours and quotes are removed with what belongs to them.
        prop_assume!(!before.contains("MIOpen(") && !before.contains(['\u{1b}', '"']));
        let args = format!("{options} -mcpu={device}");
        let shown = if quoted { format!("\"{name}\"") } else { name.clone() };
        let line = format!(
            "{before}MIOpen(HIP): Info2 [LoadBinary] Unable to load binary for: {shown}; args: {args}\n"
        );
        let key = KernelKey { kernel_name: name, kernel_args: args };
        prop_assert_eq!(parsed([line.as_bytes()]), [(1, Ok((Event::Missed, key)))]);
    }

    #[test]
    fn pieces_of_any_size_give_the_same_messages(
        pieces in proptest::collection::vec(piece(), 0..80),
        sizes in proptest::collection::vec(1_usize..40, 1..10),
    ) {
        let text = pieces.concat();
        let whole = parsed([&text[..]]);
        let mut rest = &text[..];
        let mut cut = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(rest.len().min(*size));
            cut.push(piece);
            rest = after;
        }
        prop_assert_eq!(parsed(cut), whole.clone());
        // Reading line by line gives the same.
        let mut by_line = Vec::new();
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            by_line.extend(parsed([line]).into_iter().map(|(_, parsed)| (number, parsed)));
        }
        prop_assert_eq!(by_line, whole);
    }
}
