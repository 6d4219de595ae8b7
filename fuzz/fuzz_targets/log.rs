//! Any bytes as MIOpen's log: the same keys whatever the pieces it comes in,
//! and each key told again by the line that it would be written as.
#![no_main]

use gfxpack_harvest::LineError;
use gfxpack_harvest::log::{DriverCommand, Event, Lines, Message};
use gfxpack_model::KernelKey;
use libfuzzer_sys::fuzz_target;

type Messages = Vec<(u64, Result<(Event, KernelKey), LineError>)>;

fn messages<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Messages {
    let mut messages = Vec::new();
    let mut each = |number, line: &[u8], cut| {
        for (_, message) in Message::in_line(line, cut) {
            messages.push((number, message.map(|message| (message.event, message.key()))));
        }
    };
    let mut lines = Lines::with(Message::MARK);
    for piece in pieces {
        lines.push(piece, &mut each);
    }
    lines.finish(&mut each);
    messages
}

fn commands<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<(u64, Result<String, LineError>)> {
    let mut found = Vec::new();
    let mut each = |number, line: &[u8], cut| {
        for command in DriverCommand::in_line(line, cut) {
            if let Ok(command) = &command {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.,:=+- ".contains(&b);
                assert!(command.as_str().bytes().all(plain), "no shell takes it for more");
            }
            found.push((number, command.map(|command| command.to_string())));
        }
    };
    let mut lines = Lines::with(DriverCommand::PROGRAM.as_bytes());
    for piece in pieces {
        lines.push(piece, &mut each);
    }
    lines.finish(&mut each);
    found
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, log)) = bytes.split_first() else { return };
    let whole = messages([log].into_iter());
    assert!(messages(log.chunks(usize::from(*size) + 1)) == whole, "pieces of {size} differ");
    let pieces = log.chunks(usize::from(*size) + 1);
    assert!(commands(pieces) == commands([log].into_iter()), "pieces of {size} differ");

    let lines = log.split(|byte| *byte == b'\n').count() as u64;
    for (line, message) in whole {
        assert!((1..=lines).contains(&line), "line {line} of {lines}");
        match message {
            Ok((_, key)) => {
                let text = format!(
                    "MIOpen(HIP): Info2 [SaveBinary] Saving binary for: \"{}\"; args: {}\n",
                    key.kernel_name, key.kernel_args
                );
                assert_eq!(messages([text.as_bytes()].into_iter()), [(1, Ok((Event::Saved, key)))]);
            }
            Err(error) => assert!(!error.to_string().is_empty() && !error.hint.is_empty()),
        }
    }
});
