//! The same keys from every source and with every option.

use std::path::PathBuf;

use gfxpack_harvest::ContentKind;
use gfxpack_harvest::LineError;
use gfxpack_model::KernelKey;
use gfxpack_model::key_record::{Counts, KeyRecord};

use crate::support::{harvested, kdb, key, keys_of, line, log, packed};

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
fn a_log_and_kdbs_give_the_same_keys_alone_and_together() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let keys = keys(60);
    std::fs::write(at("app.log"), log(&keys)).unwrap();
    kdb(&at("gfx906_60.ukdb"), &keys);
    kdb(&at("gfx906_64.kdb"), &keys);
    let gather = |names: &[&str]| {
        let paths: Vec<PathBuf> = names.iter().map(|name| at(name)).collect();
        harvested(&paths)
    };
    let (of_log, reports) = gather(&["app.log"]);
    assert_eq!(keys_of(&of_log), keys);
    assert_eq!((reports[0].kind, reports[0].lines, reports[0].used), (ContentKind::Log, 300, 180));
    let (of_user, reports) = gather(&["gfx906_60.ukdb"]);
    assert_eq!(keys_of(&of_user), keys);
    assert_eq!((reports[0].kind, reports[0].used), (ContentKind::Ukdb, 60));
    let (of_all, _) = gather(&["app.log", "gfx906_60.ukdb", "gfx906_64.kdb"]);
    assert_eq!(keys_of(&of_all), keys);
    let counts = Counts { seen: 1, misses: 1, saved: 1, kdbs: 1, ukdbs: 1, ..Counts::default() };
    let targets = ["gfx906", "gfx906@60", "gfx906@64"].map(str::to_owned).to_vec();
    assert_eq!(of_all[0], KeyRecord { key: keys[0].clone(), counts, targets });
    // A directory gives the keys of its files, and its harvest is a valid
    // input.
    assert_eq!(harvested(&[directory.path().into()]).0, of_all);
    let lines = |records: &[KeyRecord]| -> String {
        records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect()
    };
    std::fs::write(at("one.jsonl"), lines(&of_log)).unwrap();
    std::fs::write(at("two.jsonl"), lines(&of_user)).unwrap();
    std::fs::write(at("three.jsonl"), lines(&gather(&["gfx906_64.kdb"]).0)).unwrap();
    let (again, reports) = gather(&["three.jsonl", "one.jsonl", "two.jsonl"]);
    assert_eq!(again, of_all);
    assert!(reports.iter().all(|report| report.kind == ContentKind::Keys && report.used == 60));
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
