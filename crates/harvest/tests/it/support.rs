//! Logs and kdbs, and their harvests.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use gfxpack_harvest::{FileReport, Options, harvest, list};
use gfxpack_kdb::{Row, WriteOptions, write};
use gfxpack_model::KernelKey;
use gfxpack_model::key_record::KeyRecord;

pub(crate) fn key(number: u64, processor: &str) -> KernelKey {
    KernelKey {
        kernel_name: format!("kernel{}.cl.o", number % 7),
        kernel_args: format!(" -DN={number}  -DX=\"a b\" -mcpu={processor}"),
    }
}

/// A line of a log, in the style of some release, with a prefix.
pub(crate) fn line(verb: &str, key: &KernelKey, style: u64) -> String {
    let function = if verb == "Saving" { "SaveBinary" } else { "LoadBinary" };
    let verb = match verb {
        "Loading" => "Loading binary for: ",
        "Found" => "Successfully loaded binary for: ",
        "Missed" => "Unable to load binary for: ",
        _ => "Saving binary for: ",
    };
    let before = ["", "140300175522944 ", "node-17 4242 ", "2024-10-01T12:00:00Z INFO - "];
    let before = before[(style % 4) as usize];
    let after = ["", "   0.125", "(2024-10-01 12:00:00)"][(style % 3) as usize];
    let KernelKey { kernel_name, kernel_args } = key;
    let name = match style % 5 {
        0 => format!("{kernel_name}; args: "),
        1 => format!("{} ;args: ", kernel_name.strip_suffix(".o").unwrap()),
        _ => format!("\"{kernel_name}\"; args: "),
    };
    format!("{before}MIOpen(HIP){after}: Info2 [{function}] {verb}{name}{kernel_args}\n")
}

/// The log of a program without these keys, with other messages between.
pub(crate) fn log(keys: &[KernelKey]) -> String {
    let mut text = String::new();
    for (key, style) in keys.iter().zip(0..) {
        text.push_str("MIOpen(HIP): Info [FindSolutionImpl] ConvAsm3x3U\n");
        for verb in ["Loading", "Missed", "Saving"] {
            text.push_str(&line(verb, key, style));
        }
        text.push_str("step 17, loss 0.25\n");
    }
    text
}

pub(crate) fn kdb(path: &Path, keys: &[KernelKey]) {
    let mut keys = keys.to_vec();
    keys.sort();
    keys.dedup();
    let rows: Vec<Row<'_>> = keys.iter().map(|key| Row { key, size: 64 }).collect();
    let options = WriteOptions::default();
    write(path, &rows, &options, |index| std::io::Result::Ok(vec![index as u8; 64])).unwrap();
}

pub(crate) fn packed(text: &str, codec: &str) -> Vec<u8> {
    let text = text.as_bytes();
    match codec {
        "gzip" => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        "zstd" => zstd::encode_all(text, 1).unwrap(),
        "xz" => {
            let mut out = liblzma::write::XzEncoder::new(Vec::new(), 1);
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        _ => text.to_vec(),
    }
}

pub(crate) type Harvested = (Vec<KeyRecord>, Vec<FileReport>);

pub(crate) fn harvested(paths: &[PathBuf]) -> Harvested {
    let (keys, files) = harvest(&list(paths).unwrap(), &Options::default()).unwrap();
    assert!(keys.is_sorted_by(|a, b| a.key < b.key), "in order, each once");
    (keys, files)
}
