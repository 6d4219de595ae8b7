//! Files in the forms that MIOpen, its users and gfxpack write.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::*;

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }
}

fn read_files(paths: &[&Path]) -> Result<Problems> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    read_problems(&paths, &Options::default(), false)
}

/// The problems of one file with this name and text.
fn texts(name: &str, text: &str) -> Vec<String> {
    let dir = Dir::new();
    let read = read_files(&[&dir.write(name, text)]).unwrap_or_else(|error| panic!("{error}"));
    read.problems.iter().map(ToString::to_string).collect()
}

/// The error of one file and its hint, without the directory.
fn refusal(name: &str, text: impl AsRef<[u8]>) -> [String; 2] {
    let dir = Dir::new();
    let error = read_files(&[&dir.write(name, text)]).expect_err("refused");
    [
        error.to_string().replace(&format!("{}/", dir.0.path().display()), ""),
        error.hint().unwrap().into(),
    ]
}

/// The number of problems in one file with this name and text, and by kind the lines that can't be
/// read: how many, the first, and its text.
fn skips(name: &str, text: impl AsRef<[u8]>) -> (usize, Vec<(u64, u64, String)>) {
    let dir = Dir::new();
    let read = read_files(&[&dir.write(name, text)]).unwrap_or_else(|error| panic!("{error}"));
    let skipped = read.files[0].skipped.iter();
    let skipped = skipped.map(|one| (one.lines, one.first, one.text.clone())).collect();
    (read.problems.len(), skipped)
}

const A: &str =
    "conv -n 1 -c 3 -H 8 -W 8 -k 4 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1";
const B: &str =
    "convfp16 -n 2 -c 3 -H 8 -W 8 -k 4 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 0";

#[test]
fn lists_and_logs_give_the_same_sorted_problems() {
    let list = format!("# a list\n\n{B}\n  {A} -t 1 # twice\n{A}\npool -n 1 -c 2\n");
    let script = format!(
        "#!/bin/sh\nset -u\nMIOpenDriver() {{\n}}\nMIOpenDriver pool -n 1 -c 2\nMIOpenDriver {A}\nMIOpenDriver {B}\n"
    );
    let log = format!(
        "Epoch 1\nx=y:z\nMIOpen(HIP): Info2 [f] a\n\
         4242 MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver {A} -t 1\r\n\
         MIOpen(HIP): Command [LogCmdFindConvolution] ./bin/MIOpenDriver {B} -S 85\n\
         MIOpen(HIP): Command [p] ./bin/MIOpenDriver pool -n 1 -c 2"
    );
    let expected = [A, B, "pool -n 1 -c 2"];
    for text in [&list, &script, &log] {
        assert_eq!(texts("x", text), expected, "{text}");
    }
    let dir = Dir::new();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(log.as_bytes()).expect("packed");
    let log = dir.write("log.gz", packed.finish().expect("packed"));
    let list = dir.write("list", list);
    let read = read_files(&[&log, &list]).expect("read");
    assert_eq!(read.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    let counts = read.files.iter().map(|file| (file.lines, file.used, file.added));
    assert_eq!(counts.collect::<Vec<_>>(), [(6, 3, 3), (6, 4, 0)]);
    assert_eq!(read_files(&[&list, &log]).expect("read").problems, read.problems);
}

#[test]
fn lines_that_cannot_be_read_are_counted_by_kind() {
    let list = format!("{A}\nconv -n 0\n{B}\nresnet50\nconv -I CHWN\nconv -O CHWN\nconv -n 0 -c 2");
    let expected = [(2, 2, "conv -n 0"), (1, 4, "resnet50"), (2, 5, "conv -I CHWN")];
    let expected = expected.map(|(lines, first, text)| (lines, first, text.to_owned())).to_vec();
    assert_eq!(skips("list", &list), (2, expected));
    // Without any problem, and if it is to be strict, the first is an error.
    let [message, hint] = refusal("list", "conv -n 0\nconv -x\n");
    assert_eq!(
        message,
        "failed to read `list:1` and 1 further line: failed to accept the problem: batchsize is 0"
    );
    assert!(hint.contains("from 1"), "{hint}");
    let dir = Dir::new();
    let strict = |path| read_problems(&[path], &Options::default(), true);
    let error = strict(dir.write("list", &list)).expect_err("strict");
    assert!(error.to_string().contains("list:2` and 4 further lines: "), "{error}");
    strict(dir.write("list", A)).expect("all is read");
    let interleaved = "MIOpen(HIP): C [L] ./bin/MIOpenDriver conv -n 1MIOpen(HIP): I [x] y";
    let [message, hint] = refusal("log", interleaved);
    assert!(message.starts_with("failed to read `log:1`: "), "{message}");
    assert!(hint.contains("its own log"), "{hint}");
}

#[test]
fn a_list_is_read_with_what_log_tools_write_before_it() {
    for line in [
        format!("2026-09-01T10:11:12.3Z {A}"),
        format!("[1,0]<stdout>:{A}"),
        format!("[rank1]: {A} # twice"),
        format!("\u{feff}{A}\r"),
        format!("{{\"log\":\"{A}\\n\",\"stream\":\"stdout\"}}"),
        format!("MIOPEN_FIND_MODE=1 MIOpenDriver {} 2>&1 | tee log", A.replace(" -k", " \\\n -k")),
        A.replace(" -k", " \\\r\n -k"),
        "0: 576-4-5-1x3-192-4-5-8-0x1-1x1-1x1-0-NCHW-FP32-F=S:0.5,0,a".to_owned(),
        "> 576-4-5-1x3-192-4-5-8-0x1-1x1-1x1-0-NCHW-FP32-F=S:0.5,0,a".to_owned(),
        "+576-4-5-1x3-192-4-5-8-0x1-1x1-1x1-0-NCHW-FP32-F=S:0.5,0,a".to_owned(),
        "x.fdb.txt:576-4-5-1x3-192-4-5-8-0x1-1x1-1x1-0-NCHW-FP32-F=S:0.5,0,a".to_owned(),
    ] {
        assert_eq!(skips("x", &line), (1, vec![]), "{line}");
    }
    let dir = Dir::new();
    let commented = format!("# MIOpenDriver {A} ;\\\nMIOpenDriver {A}");
    let read = read_files(&[&dir.write("x", commented)]).expect("one");
    assert_eq!((read.problems.len(), read.files[0].comments), (1, 1));
    for prose in ["Epoch 1: sum", "all of conv", "the pool -"] {
        assert!(refusal("x", prose)[0].starts_with("failed to find a problem"), "{prose}");
    }
}

#[test]
fn commands_in_quotes_are_read() {
    for text in [
        format!("[\n  \"{A}\",\n  \"{B}\"\n]\n"),
        format!("cmds = ['{A}', '{B}']\n"),
        format!("- {A}\n- '{B}'\n"),
        format!("| `{A}` | 2 |\n| `{B}` | 3 |\n"),
        format!("{A} # 12=twelve\n{B}\n"),
    ] {
        assert_eq!(texts("x", &text), [A, B], "{text}");
    }
    // A torn line has no end of its quotation.
    assert_eq!(skips("x", format!("{A}\n\"conv -n 1 -c 6")).0, 1);
}

#[test]
fn a_damaged_database_gives_its_other_records() {
    let key = |channels: u32| format!("{channels}-16-16-3x3-64-16-16-2-1x1-1x1-1x1-0-NCHW-FP32-F");
    let record = |channels| format!("{}=S:0.5,0,miopenConvolutionFwdAlgoDirect", key(channels));
    let name = "gfx1030_18.HIP.3_4_0_.ufdb.txt";
    for damaged in [
        &b"128-16-16-3x3-64-16-16-4-1x1-1x1-1x1-0-NCHW-FP"[..],
        b"=S:0.5,0,a",
        b"12\08-16-16-3x3-64-16-16-4-1x1-1x1-1x1-0-NCHW-FP32-F=S:1,0,a",
        b"128-\xe9-16-3x3-64-16-16-4-1x1-1x1-1x1-0-NCHW-FP32-F=S:1,0,a",
        b"<<<<<<< HEAD",
    ] {
        let text = [record(128).as_bytes(), b"\n", damaged, b"\n", record(64).as_bytes()].concat();
        let (problems, skipped) = skips(name, &text);
        assert_eq!(problems, 2, "{}", text.escape_ascii());
        assert_eq!((skipped.len(), skipped[0].0, skipped[0].1), (1, 1, 2));
        let [message, hint] = refusal(name, damaged);
        assert!(message.contains("1`: failed to read the record: it is damaged"), "{message}");
        assert!(hint.contains("perfdb lint"), "{hint}");
    }
    // Two records in one line: where the second begins is sometimes known.
    let torn = |before: &str| format!("{}=S:0.5,0,{before}{}", key(128), record(64));
    assert_eq!(skips(name, torn("miopenConvolutionFwdAlgoDirect")), (2, vec![]));
    assert_eq!(skips(name, torn("miop")), (2, vec![]));
    for before in ["", "miopenConvolutionFwdAlgoDirect;T:0.5,0", "miopenX;ConvWrW5"] {
        let (problems, skipped) = skips(name, torn(before));
        assert_eq!((problems, skipped.len()), (1, 1), "{before}");
    }
    for (text, expected) in [("", "the file is empty"), ("\0\0\0\0", "the file is empty")] {
        let [message, hint] = refusal(name, text);
        assert_eq!(message, format!("failed to find a problem in `{name}`"));
        assert!(hint.starts_with(expected), "{hint}");
    }
    let [message, hint] = refusal(name, "version https://git-lfs.github.com/spec/v1\noid sha256:0");
    assert!(message.ends_with("it is a pointer of Git LFS, not the file"), "{message}");
    assert!(hint.contains("git lfs pull"), "{hint}");
}

#[test]
fn a_file_without_problems_is_refused_unless_its_directory_was_named() {
    for text in ["# nothing\n", "Epoch 1\nEpoch 2\n", "MIOpen(HIP): Info x\n"] {
        let [message, hint] = refusal("log", text);
        assert_eq!(message, "failed to find a problem in `log`", "{text}");
        assert!(hint.contains("MIOPEN_ENABLE_LOGGING_CMD"), "{hint}");
    }
    let dir = Dir::new();
    dir.write("a.log", "Epoch 1\n");
    dir.write("b.log", format!("MIOpenDriver {A}\n"));
    assert_eq!(read_files(&[dir.0.path()]).expect("read").problems.len(), 1);
    let error = read_files(&[Path::new("/nowhere")]).expect_err("no such file");
    assert_eq!(error.to_string(), "failed to read `/nowhere`");
}

#[test]
fn the_output_channels_of_a_logged_group_are_those_of_all_groups() {
    let line = |k: u64| {
        format!(
            "conv -n 1 -c 8 -H 8 -W 8 -k {k} -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 -m trans -g 4 -F 1"
        )
    };
    let log = |k: u64| format!("MIOpen(HIP): Command [L] ./bin/MIOpenDriver {}\n", line(k));
    assert_eq!(texts("log", &log(3)), [line(12)]);
    assert_eq!(texts("log", &log(4)), [line(4), line(16)]);
    assert_eq!(texts("list", &line(4)), [line(4)]);
    assert_eq!(texts("list", &format!("MIOpenDriver {}", line(3))), [line(12)]);
}

#[test]
fn a_key_of_a_find_database_is_one_problem() {
    let check = |key: &str, expected: &str| {
        let record = format!("{key}=S:0.5,0,miopenConvolutionFwdAlgoDirect\n");
        assert_eq!(texts("gfx906_60.HIP.fdb.txt", &record), [expected], "{key}");
        assert_eq!(texts("list", &record), [expected], "{key}");
    };
    check(
        "576-4-5-1x3-192-4-5-8-0x1-1x1-1x1-0-NCHW-FP32-F",
        "conv -n 8 -c 576 -H 4 -W 5 -k 192 -y 1 -x 3 -p 0 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1",
    );
    // dy is 28×28, x 55×56.
    check(
        "512-28-28-3x3-256-55-56-204-1x1-2x2-1x1-0-NHWC-NCHW-NCHW-FP16-B_g2",
        "convfp16 -n 204 -c 256 -H 55 -W 56 -k 512 -y 3 -x 3 -p 1 -q 1 -u 2 -v 2 -l 1 -j 1 \
         --out_layout NHWC -m conv -g 2 -F 2",
    );
    check(
        "192-2-14-15-3x1x1-64-4-14-15-1-0x0x0-1x1x1-1x1x1-0-NCDHW-BF16-W",
        "convbfp16 -n 1 -c 64 --in_d 4 -H 14 -W 15 -k 192 --fil_d 3 -y 1 -x 1 --pad_d 0 -p 0 -q 0 \
         --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1 -F 4",
    );
    check(
        "4-8-8-3x3-4-8-8-1-1x1-1x1-1x1-0-NHWC-NHWC-NHWC-INT8INT8INT32-F",
        "convint8 -n 1 -c 4 -H 8 -W 8 -k 4 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 \
         --in_layout NHWC --fil_layout NHWC --out_layout NHWC -m conv -g 1 -F 1",
    );
}

/// Records of performance databases, and heights and widths of their inputs.
#[track_caller]
fn inputs(key: &str, expected: &[(u64, u64)]) {
    let text = format!("{key}=ConvAsm1x1U:1,16,1,64,3,2,1,4\n");
    let dir = Dir::new();
    let read = read_files(&[&dir.write("gfx906_60.db.txt", text)]).expect("read");
    let size = |problem: &Problem| match problem {
        Problem::Convolution(one) => (one.input[1], one.input[2]),
        Problem::Driver(line) => panic!("{line}"),
    };
    let sizes: Vec<_> = read.problems.iter().map(size).collect();
    assert_eq!(sizes, expected, "{key}");
}

#[test]
fn a_key_of_a_performance_database_gives_every_possible_input() {
    assert_eq!(
        texts("x.db.txt", "2x64x56x55x1x1x3x1x256x32x0x2x0x1x2x0x1x1x0x0x1xNCHWxFP32xF=A:1"),
        [
            "conv -n 32 -c 64 -H 56 -W 55 -k 256 -y 1 -x 3 -p 0 -q 2 -u 1 -v 2 -l 1 -j 1 -m conv -g 1 -F 1"
        ]
    );
    // Without a stride, x is known.
    inputs("2x64x56x56x1x3x3x1x256x32x1x1x0x1x1x0x1x1x0x0x1xNCHWxFP32xB", &[(56, 56)]);
    let all = [(55, 55), (55, 56), (56, 55), (56, 56)];
    inputs("2x64x28x28x1x3x3x1x256x32x1x1x0x2x2x0x1x1x0x0x1xNCHWxFP32xB", &all);
    inputs("2x64x28x28x1x3x3x1x256x32x1x1x0x2x2x0x1x1x0x0x1xNCHWxFP32xW", &all);
    inputs("2x64x1x1x1x1x1x1x256x32x0x0x0x1x3x0x1x1x0x0x1xNCHWxFP32xW", &[(1, 1), (1, 2), (1, 3)]);
    // No input is empty.
    inputs("2x64x1x1x1x1x1x1x256x32x1x0x0x4x1x0x1x1x0x0x1xNCHWxFP32xW", &[(1, 1), (2, 1)]);
}

#[test]
fn every_input_of_a_key_has_the_output_of_the_key() {
    for (stride, filter, dilation, pad) in [(2, 3, 1, 1), (3, 5, 2, 0), (4, 1, 1, 0), (5, 2, 3, 2)]
    {
        let key = format!(
            "2x64x9x7x1x{filter}x{filter}x1x8x1x{pad}x{pad}x0x{stride}x{stride}x0x{dilation}x{dilation}x0x0x1xNCHWxFP32xW"
        );
        let found = keys::convolutions(&key).expect("a key");
        assert_eq!(found.len(), (stride * stride) as usize, "{key}");
        assert!(found.iter().all(|one| one.output() == Some([1, 9, 7])), "{key}");
    }
}

#[test]
fn records_of_other_primitives_are_skipped_and_counted() {
    let good = "2x64x56x56x1x1x1x1x256x32x0x0x0x1x1x0x1x1x0x0x1xNCHWxFP32xF";
    let check = |key: &str, error: &str| {
        let dir = Dir::new();
        let read = read_files(&[&dir.write("x.udb.txt", format!("{good}=A:1\n{key}=A:1\n"))]);
        let read = read.expect("one record is good");
        let file = &read.files[0];
        assert_eq!((file.used, file.passed_over, read.problems.len()), (1, 1, 1), "{key}");
        let (line, why) = file.first_passed_over.as_ref().expect("one is skipped");
        assert_eq!((*line, why.split_once(" the ").unwrap().1), (2, error), "{key}");
    };
    check("variant1gx256", "key: it is no convolution's");
    check("64-56-56-1x1-256-56-56-32-0x0-1x1-1x1-0-NCHW-FP32", "key: it is no convolution's");
    check("64-56-56-1x1-256-56-56-32-0x0x0-1x1-1x1-0-NCHW-FP32-F", "key: it is no convolution's");
    check(
        "64-56-56-1x1-256-56-56-32-0x0-1x1-1x1-0-NCHWc-FP32-F",
        "key: tensors of `NCHWc` are not supported",
    );
    check(
        "64-56-56-1x1-256-56-56-32-0x0-1x1-1x1-0-NCHW-BF8-F",
        "key: tensors of `BF8` are not supported",
    );
    check(
        "64-56-56-1x1-256-56-56-32-0x0-1x1-1x1-0-NCHW-FP32-F_g2_ciFP8",
        "key: tensors of `ciFP8` are not supported",
    );
    check(
        "64-56-56-1x1-256-55-55-32-0x0-1x1-1x1-0-NCHW-FP32-F",
        "key: no convolution has both its input and its output",
    );
    let no_group = "problem: 64 and 256 channels do not divide into groups: 3";
    check("64-56-56-1x1-256-56-56-32-0x0-1x1-1x1-0-NCHW-FP32-F_g3", no_group);
    check(
        "2x64x5x5x1x1x1x1x256x32x0x0x0x99x99x0x1x1x0x0x1xNCHWxFP32xB",
        "key: its stride leaves 9801 inputs possible",
    );
    check(
        "2x64x5x5x1x1x1x1x256x32x0x0x0x2147483648x1x0x1x1x0x0x1xNCHWxFP32xB",
        "key: it is no convolution's",
    );
    let [message, hint] = refusal("x.udb.txt", "variant1gx256=A:1\n");
    assert_eq!(message, "failed to find a problem in `x.udb.txt`");
    assert!(hint.contains("line 1: failed to read the key"), "{hint}");
}

#[test]
fn sqlite_databases_are_read_as_text_ones_are() {
    let columns = "spatial_dim,in_channels,in_h,in_w,in_d,fil_h,fil_w,fil_d,out_channels,batchsize,\
        pad_h,pad_w,pad_d,conv_stride_h,conv_stride_w,conv_stride_d,dilation_h,dilation_w,dilation_d,\
        bias,group_count,layout,data_type,direction";
    let keys = [
        "2x64x28x28x1x3x3x1x256x32x1x1x0x2x2x0x1x1x0x0x1xNCHWxFP32xB",
        "2x64x56x56x1x1x1x1x256x32x0x0x0x1x1x0x1x1x0x0x1xNCHWxFP16xF",
        "2x0x56x56x1x1x1x1x256x32x0x0x0x1x1x0x1x1x0x0x1xNCHWxFP16xF",
    ];
    let dir = Dir::new();
    let path = dir.0.path().join("gfx906_60.db");
    let connection = rusqlite::Connection::open(&path).expect("opened");
    connection
        .execute_batch(&format!("CREATE TABLE config (id INTEGER PRIMARY KEY, {columns})"))
        .expect("a table");
    for key in keys {
        let values: Vec<String> = key.split('x').map(|value| format!("'{value}'")).collect();
        let insert = format!("INSERT INTO config ({columns}) VALUES ({})", values.join(","));
        connection.execute_batch(&insert).expect("a row");
    }
    drop(connection);
    let text = dir.write("gfx906_60.db.txt", keys.map(|key| format!("{key}=A:1\n")).concat());
    let [sqlite, text] = [path, text].map(|path| read_files(&[&path]).expect("read"));
    assert_eq!(sqlite.problems.len(), 5);
    assert_eq!(sqlite.problems, text.problems);
    let counts =
        |read: &Problems| (read.files[0].lines, read.files[0].used, read.files[0].passed_over);
    assert_eq!(counts(&sqlite), (3, 2, 1));
    assert_eq!(counts(&text), (3, 2, 1));
}
