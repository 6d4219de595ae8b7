//! The same keys from every source and with every option.

use std::path::PathBuf;

use gfxpack_harvest::LineError;
use gfxpack_model::KernelKey;

use crate::support::{harvested, kdb, key, line, log, packed};

fn keys(count: u64) -> Vec<KernelKey> {
    let mut keys: Vec<KernelKey> = (0..count).map(|number| key(number, "gfx906")).collect();
    keys.sort();
    keys
}

fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

#[test]
fn compressed_and_split_logs_give_the_same_keys() {
    let keys = keys(40);
    let text = log(&keys);
    let (_directory, path) = written("plain.log", text.as_bytes());
    let expected = harvested(&[path]).0;
    for codec in ["gzip", "zstd", "xz"] {
        // The name does not show the codec, and a file may consist of several
        // packed parts.
        let (head, tail) = text.split_at(text.len() / 3);
        let bytes = [packed(head, codec), packed(tail, codec)].concat();
        let (_directory, path) = written("rotated.log.1", &bytes);
        let (records, reports) = harvested(&[path]);
        assert!(reports[0].error.is_none(), "{codec}: {:?}", reports[0].error);
        assert_eq!(records, expected, "{codec}");
    }
    let directory = tempfile::tempdir().unwrap();
    for (number, part) in text.split_inclusive("step").enumerate() {
        std::fs::write(directory.path().join(number.to_string()), part).unwrap();
    }
    assert_eq!(harvested(&[directory.path().into()]).0, expected);
}

#[test]
fn a_truncated_or_unreadable_file_is_an_error_of_its_report() {
    let text = log(&keys(2000));
    for codec in ["gzip", "zstd", "xz"] {
        let mut bytes = packed(&text, codec);
        bytes.truncate(bytes.len() - 20);
        let (_directory, path) = written("app.log", &bytes);
        let (_, reports) = harvested(&[path]);
        let error = reports[0].error.as_ref().expect(codec);
        assert!(error.to_string().contains(codec), "{error}");
    }
    // The file's content is not an SQLite database, whatever its name.
    for (name, text) in [("gfx906.kdb", "version https://git-lfs"), ("a.ukdb", &text[..600])] {
        let (_directory, path) = written(name, text.as_bytes());
        let error = harvested(&[path]).1.remove(0).error.unwrap();
        assert!(error.to_string().contains(name), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gfx906.kdb");
    kdb(&path, &keys(3));
    let bytes = zstd::encode_all(&std::fs::read(&path).unwrap()[..], 1).unwrap();
    let (_directory, path) = written("gfx906.kdb.zst", &bytes);
    let error = harvested(&[path]).1.remove(0).error.unwrap();
    assert!(error.hint().unwrap().contains("unpack"), "{error}");
}

#[test]
fn unusable_lines_are_counted() {
    let good = line("Missed", &key(1, "gfx906"), 2);
    let cut = &good[..good.len() - 3];
    let text = format!("{good}{good}{cut}\n{cut}\n{}{good}", good.trim_end());
    let (_directory, path) = written("app.log", text.as_bytes());
    let (records, reports) = harvested(&[path]);
    assert_eq!((records.len(), records[0].counts.misses), (1, 3));
    let skipped: Vec<_> =
        reports[0].skipped.iter().map(|skip| (&*skip.why, skip.lines, skip.first)).collect();
    let (device, torn) = (LineError::DEVICE.to_string(), LineError::INTERLEAVED.to_string());
    assert_eq!(skipped, [(&*device, 2, 3), (&*torn, 1, 5)]);

    let good = r#"{"kernel_name":"a.cl.o","kernel_args":" -mcpu=gfx906"}"#;
    let text = format!("{good}\n\n{{\"kernel_name\":1}}\n{good}\n{good}x\n");
    let (_directory, path) = written("keys", text.as_bytes());
    let (records, reports) = harvested(&[path]);
    assert_eq!((records.len(), reports[0].used, reports[0].skipped.lines()), (1, 2, 2));
    assert_eq!(records[0].targets, ["gfx906"]);

    // Lists in JSON, torn lines, prefixes with braces, a log of its own.
    let other = good.replace("a.cl", "b.cl");
    let message = line("Missed", &key(1, "gfx906"), 2);
    let text = format!("[{good},\n{other}\n]\n{good}{other}\n{{pod=x}} {good}\n{message}");
    let (_directory, path) = written("keys", text.as_bytes());
    let (records, reports) = harvested(&[path]);
    assert_eq!((records.len(), reports[0].used, reports[0].skipped.lines()), (3, 6, 0));
}
