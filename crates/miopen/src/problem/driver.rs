//! MIOpenDriver's operations other than convolutions, whose options are not checked.

use gfxpack_harvest::LineError;

use super::bad_option;
use super::values::Problem;

/// Operations without type, with the suffixes for types.
///
/// Source: ROCm/MIOpen 2d1fd997a, `ParseBaseArg` in driver/driver.hpp and
/// driver/dm_*.cpp. `bnormbfp16` is what MIOpen itself logs, in
/// driver_arguments.cpp.
const OPERATIONS: [(&str, &[&str]); 34] = [
    ("CBAInfer", &["", "fp16"]),
    ("activ", &["", "fp16"]),
    ("adam", &["", "fp16"]),
    ("adamw", &["", "fp16"]),
    ("addlayernorm", &["", "fp16", "bfp16"]),
    ("ampadam", &[""]),
    ("ampadamw", &[""]),
    ("bnorm", &["", "fp16", "bfp16", "fp16fp32", "bfp16fp32"]),
    ("cat", &["", "fp16", "bfp16"]),
    ("ctc", &[""]),
    ("dropout", &["", "fp16"]),
    ("gemm", &["", "fp16"]),
    ("getitem", &["", "fp16", "bfp16"]),
    ("glu", &["", "fp16", "bfp16"]),
    ("groupnorm", &["", "fp16", "bfp16"]),
    ("kthvalue", &["", "fp16", "bfp16"]),
    ("layernorm", &["", "fp16", "bfp16"]),
    ("lrn", &["", "fp16"]),
    ("multimarginloss", &["", "fp16", "bfp16"]),
    ("pool", &["", "fp16"]),
    ("prelu", &["", "fp16", "bfp16"]),
    ("reduce", &["", "fp16", "fp64"]),
    ("reducecalculation", &["", "fp16", "bfp16"]),
    ("reduceextreme", &["", "fp16", "bfp16"]),
    ("rnn", &["", "fp16"]),
    ("rnn_seq", &["", "fp16"]),
    ("rope", &["", "fp16", "bfp16"]),
    ("softmarginloss", &["", "fp16", "bfp16"]),
    ("softmax", &["", "fp16"]),
    ("sum", &["", "fp16", "bfp16"]),
    ("t5layernorm", &["", "fp16", "bfp16"]),
    ("tensorop", &["", "fp16"]),
    ("transformersadamw", &["", "fp16"]),
    ("transformersampadamw", &[""]),
];

/// Whether MIOpenDriver has that operation, and it is no convolution.
pub(super) fn is_operation(name: &str) -> bool {
    OPERATIONS.iter().any(|(operation, types)| {
        name.strip_prefix(operation).is_some_and(|suffix| types.contains(&suffix))
    })
}

/// The problem of an operation and its options, which come in pairs.
///
/// Source: ROCm/MIOpen 2d1fd997a, `InputFlags::Parse` in
/// driver/InputFlags.cpp.
pub(super) fn problem(operation: &str, options: &[&str]) -> Result<Problem, LineError> {
    for pair in options.chunks(2) {
        if !pair[0].starts_with('-') || pair[0].len() < 2 {
            return Err(bad_option(pair[0], "it is no option"));
        }
        if pair.len() < 2 {
            return Err(bad_option(pair[0], "its value is missing"));
        }
    }
    Ok(Problem::Driver([&[operation], options].concat().join(" ")))
}
