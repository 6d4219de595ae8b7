//! Models in ONNX, written by these tests, so that only their content matters.

mod networks;
mod writer;

use std::collections::BTreeSet;
use std::fs;

use gfxpack_tests::project::{Project, Run, binary, command, finish};
use writer::{BFLOAT16, DOUBLE, FLOAT16, Graph, INT8};

fn run(model: &[u8], options: &[&str]) -> Run {
    let project = Project::new();
    fs::write(project.path().join("model.onnx"), model).expect("written");
    project.run(&[&["problems", "model.onnx"], options].concat())
}

/// The lines of a model all of whose layers are known.
#[track_caller]
fn lines(model: &[u8], options: &[&str]) -> Vec<String> {
    let run = run(model, options).expect_code(0);
    let line = |line: &str| line.strip_prefix("MIOpenDriver ").expect("a command").to_owned();
    run.stdout.lines().map(line).collect()
}

/// One layer of `x` with weights `w`.
fn one(x: &str, w: &str, operation: &str, attributes: &[&str], data_type: i64) -> Vec<u8> {
    let mut graph = Graph::with_data_type(data_type);
    graph.input(&format!("x:{x}")).weights(&format!("w:{w}")).output("y");
    graph.node(&format!("{operation} x w -> y"), attributes).model()
}

#[test]
fn models_of_networks_have_the_same_problems_as_the_tables() {
    let project = Project::new();
    let models = [
        ("resnet50", networks::resnet50()),
        ("mobilenet-v2", networks::mobilenet_v2()),
        ("densenet121", networks::densenet121()),
    ];
    let options = ["--batch", "1,32", "--type", "fp32,fp16", "--layout", "nchw,nhwc"];
    for (name, model) in models {
        for direction in ["forward", "training"] {
            let options = [&options[..], &["--direction", direction]].concat();
            let table = project.run(&[&["problems", name], &options[..]].concat()).expect_code(0);
            let table: Vec<&str> =
                table.stdout.lines().map(|line| &line["MIOpenDriver ".len()..]).collect();
            assert!(table.len() > 200, "{name}");
            assert_eq!(lines(&model, &options), table, "{name}, {direction}");
        }
    }
}

#[test]
fn a_convolutions_attributes_are_read_as_onnx_defines_them() {
    #[track_caller]
    fn conv(x: &str, w: &str, attributes: &[&str], expected: &str) {
        let expected = format!("conv {expected} -F 1");
        assert_eq!(lines(&one(x, w, "Conv", attributes, writer::FLOAT), &[]), [expected]);
    }
    conv(
        "1,3,224,224",
        "64,3,7,7",
        &["kernel_shape=7,7", "strides=2,2", "pads=3,3,3,3", "dilations=1,1", "group=1"],
        "-n 1 -c 3 -H 224 -W 224 -k 64 -y 7 -x 7 -p 3 -q 3 -u 2 -v 2 -l 1 -j 1 -m conv -g 1",
    );
    conv(
        "2,8,9,10",
        "16,2,3,1",
        &["group=4", "dilations=2,3", "pads=2,0,2,0", "auto_pad=NOTSET"],
        "-n 2 -c 8 -H 9 -W 10 -k 16 -y 3 -x 1 -p 2 -q 0 -u 1 -v 1 -l 2 -j 3 -m conv -g 4",
    );
    // One axis, three axes.
    conv(
        "1,80,3000",
        "512,80,3",
        &["pads=1,1", "strides=2"],
        "-n 1 -c 80 -H 1 -W 3000 -k 512 -y 1 -x 3 -p 0 -q 1 -u 1 -v 2 -l 1 -j 1 -m conv -g 1",
    );
    conv(
        "1,3,8,9,10",
        "4,3,1,2,3",
        &["pads=0,1,1,0,1,1"],
        "-n 1 -c 3 --in_d 8 -H 9 -W 10 -k 4 --fil_d 1 -y 2 -x 3 --pad_d 0 -p 1 -q 1 \
         --conv_stride_d 1 -u 1 -v 1 --dilation_d 1 -l 1 -j 1 --spatial_dim 3 -m conv -g 1",
    );
    // What is padded on one side alone is part of the input: along the height
    // 2 zeros before and 3 behind, along the width 3 and 3.
    conv(
        "1,3,224,225",
        "64,3,7,7",
        &["auto_pad=SAME_UPPER", "strides=2,2"],
        "-n 1 -c 3 -H 225 -W 225 -k 64 -y 7 -x 7 -p 2 -q 3 -u 2 -v 2 -l 1 -j 1 -m conv -g 1",
    );
    conv(
        "1,3,8,8",
        "4,3,2,2",
        &["pads=0,0,1,1"],
        "-n 1 -c 3 -H 9 -W 9 -k 4 -y 2 -x 2 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1",
    );
    conv(
        "1,3,8,8",
        "4,3,3,3",
        &["auto_pad=VALID"],
        "-n 1 -c 3 -H 8 -W 8 -k 4 -y 3 -x 3 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1",
    );
}

#[test]
fn transposed_convolutions_have_the_output_that_onnx_defines() {
    // 9 and 11 without padding.
    for (attributes, expected) in [
        (&[][..], "-p 0 -q 0 -u 2 -v 2 -l 1 -j 1"),
        (&["pads=1,1,1,1", "output_padding=1,1"], "-p 1 -q 1 -u 2 -v 2 -l 1 -j 1 -Y 1 -X 1"),
        (&["pads=1,1,1,1"], "-p 1 -q 1 -u 2 -v 2 -l 1 -j 1"),
        // What one side has more is cut off afterwards.
        (&["pads=0,0,1,1"], "-p 0 -q 0 -u 2 -v 2 -l 1 -j 1"),
        (&["output_shape=8,10"], "-p 0 -q 0 -u 2 -v 2 -l 1 -j 1"),
        (&["output_shape=7,9"], "-p 1 -q 1 -u 2 -v 2 -l 1 -j 1"),
        (&["output_shape=10,12"], "-p 0 -q 0 -u 2 -v 2 -l 1 -j 1 -Y 1 -X 1"),
        (&["auto_pad=SAME_UPPER"], "-p 0 -q 0 -u 2 -v 2 -l 1 -j 1"),
    ] {
        let attributes = [&["group=2", "strides=2,2"], attributes].concat();
        let model = one("1,8,4,5", "8,3,3,3", "ConvTranspose", &attributes, writer::FLOAT);
        let expected =
            format!("conv -n 1 -c 8 -H 4 -W 5 -k 6 -y 3 -x 3 {expected} -m trans -g 2 -F 1");
        assert_eq!(lines(&model, &[]), [expected], "{attributes:?}");
    }
}

#[test]
fn types_are_the_models_unless_others_are_wanted() {
    let names = |data_type, operation, options: &[&str]| {
        let model = one("1,3,16,16", "8,3,3,3", operation, &[], data_type);
        let lines = lines(&model, &[&["--direction", "f"], options].concat());
        lines.iter().map(|line| line[..line.find(' ').expect("-n")].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(writer::FLOAT, "Conv", &[]), ["conv"]);
    assert_eq!(names(FLOAT16, "Conv", &[]), ["convfp16"]);
    assert_eq!(names(BFLOAT16, "Conv", &[]), ["convbfp16"]);
    assert_eq!(names(INT8, "ConvInteger", &[]), ["convint8"]);
    assert_eq!(names(DOUBLE, "Conv", &["--type", "fp16,bf16"]), ["convfp16", "convbfp16"]);
    let double = run(&one("1,3,16,16", "8,3,3,3", "Conv", &[], DOUBLE), &[]).expect_code(100);
    assert!(double.stderr.contains("no type that MIOpen computes"), "{}", double.stderr);
    assert!(double.stderr.contains("hint: choose one by --type"), "{}", double.stderr);
}

/// Convolution, layers of other kinds, and a second convolution.
fn small(x: &str) -> Graph {
    let mut graph = Graph::new();
    graph.input(&format!("x:{x}")).weights("w:8,3,3,3").weights("s:8").weights("v:16,8,1,1");
    graph.integers("rows", &[0, -1]);
    graph.node("Conv x w -> a", &["pads=1,1,1,1"]);
    graph.node("BatchNormalization a s s s s -> b", &[]).node("LeakyRelu b -> c", &["alpha=0.25"]);
    graph.node("MaxPool c -> d", &["kernel_shape=3,3", "strides=2,2", "pads=1,1,1,1"]);
    graph.node("Conv d v -> e", &[]).node("GlobalAveragePool e -> f", &[]);
    graph.node("Reshape f rows -> g", &[]).node("Softmax g -> y", &["axis=-1"]).output("y");
    graph
}

#[test]
fn shapes_are_inferred_from_layer_to_layer() {
    let expected = [
        "conv -n 4 -c 3 -H 16 -W 18 -k 8 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1",
        "conv -n 4 -c 8 -H 8 -W 9 -k 16 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1",
        "activ -n 4 -c 8 -H 16 -W 18 -m 8 -A 0.25 -F 1",
        "bnorm -n 4 -c 8 -H 16 -W 18 -m 1 --forw 2 -b 0 -r 1",
        "pool -W 4x16x8x9,NCHW -y 8 -x 9 -p 0 -q 0 -v 1 -u 1 -m avg -F 1",
        "pool -W 4x8x16x18,NCHW -y 3 -x 3 -p 1 -q 1 -v 2 -u 2 -m max -F 1",
        "softmax -n 4 -c 16 -H 1 -W 1 -F 1",
    ];
    assert_eq!(lines(&small("N,3,16,18").model(), &["--batch", "4"]), expected);
}

/// Batches of all convolutions.
#[track_caller]
fn batches(x: &str, options: &[&str]) -> Vec<String> {
    let lines = lines(&small(x).model(), &[&["--operation", "conv"], options].concat());
    let batch = |line: &String| line.split(' ').nth(2).expect("-n N").to_owned();
    lines.iter().map(batch).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn the_batch_replaces_open_sizes_of_the_first_axis() {
    assert_eq!(batches("batch,3,16,16", &[]), ["1"]);
    assert_eq!(batches("?,3,16,16", &[]), ["1"]);
    for open in ["batch,3,16,16", "?,3,16,16", "-1,3,16,16", "0,3,16,16"] {
        assert_eq!(batches(open, &["--batch", "8,2"]), ["2", "8"]);
    }
    assert_eq!(batches("batch,3,16,16", &["--symbol", "batch=5"]), ["5"]);
    assert_eq!(batches("4,3,16,16", &[]), ["4"]);
    assert_eq!(batches("4,3,16,16", &["--batch", "4"]), ["4"]);
    let wrong = |options: &[&str], message: &str, hint: &str| {
        let x = if options[0] == "--batch" { "4,3,16,16" } else { "batch,3,16,16" };
        let run = run(&small(x).model(), options).expect_code(2);
        assert!(run.stderr.contains(message) && run.stderr.contains(hint), "{}", run.stderr);
        assert_eq!(run.stdout, "");
    };
    wrong(&["--batch", "8"], "`model.onnx` have a fixed one", "hint: leave --batch out");
    wrong(&["--symbol", "height=5"], "failed to bind `height`", "hint: they have `batch`");
    wrong(&["--size", "8x8"], "failed to use --size", "hint: say by --symbol");
    wrong(&["--symbol", "height"], "a name and a number are expected", "--help");
}

#[test]
fn unresolved_layers_are_named_with_a_hint() {
    let model = small("N,3,H,?").model();
    let open = run(&model, &["--operation", "conv"]).expect_code(100);
    assert_eq!(open.stdout, "");
    for expected in [
        "warning: model.onnx: `the/a` (Conv) is left out: the shape of its input `x` is not known: \
         the model's input `x` has `H` and `x[3]` open",
        "model.onnx: `the/e` (Conv) is left out: the shape of its input `d` is not known",
        "hint: say what they are: --symbol 'H=…' --symbol 'x[3]=…'",
        "error: failed to resolve 2 layers",
    ] {
        assert!(open.stderr.contains(expected), "{expected}: {}", open.stderr);
    }
    let options = ["--operation", "conv", "--symbol", "H=16", "--symbol", "x[3]=18"];
    assert_eq!(lines(&model, &options).len(), 2);
    let json = run(&model, &["--message-format", "json", "--operation", "conv"]).expect_code(100);
    let layers = json.of_type("unresolved-layer");
    assert_eq!((&layers[1]["layer"], &layers[1]["operation"]), (&"the/e".into(), &"Conv".into()));
    assert_eq!(json.of_type("problems")[0]["unresolved"], 2);
}

#[test]
fn stated_shapes_are_used_if_inference_fails() {
    let mut graph = Graph::new();
    graph.input("x:N,3,16,18").weights("w:8,3,3,3").weights("v:4,8,1,1").weights("u:4,3,1,1");
    graph.node("Conv x u -> z", &[]).node("SomebodysOwn x -> a", &[]);
    graph.node("Conv a w -> b", &["strides=2,2"]).node("Conv b v -> y", &[]).output("y");
    let open = run(&graph.model(), &[]).expect_code(100);
    assert!(open.stderr.contains("`the/a` (SomebodysOwn) does not tell"), "{}", open.stderr);
    assert!(open.stderr.contains("value_info"), "{}", open.stderr);
    assert!(open.stderr.contains("`the/b`") && open.stderr.contains("`the/y`"));
    // Those that are known are printed all the same.
    let known =
        "conv -n 1 -c 3 -H 16 -W 18 -k 4 -y 1 -x 1 -p 0 -q 0 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1";
    assert_eq!(open.stdout, format!("MIOpenDriver {known}\n"));
    // The second follows from the first.
    graph.states("a:N,3,9,11");
    let stated = lines(&graph.model(), &["--batch", "2"]);
    assert_eq!(stated.len(), 3);
    assert!(stated[0].starts_with("conv -n 2 -c 3 -H 9 -W 11 -k 8"), "{stated:?}");
    assert!(stated[2].starts_with("conv -n 2 -c 8 -H 4 -W 5 -k 4"), "{stated:?}");
}

#[test]
fn graphs_inside_of_layers_are_followed_and_functions_are_named() {
    let branch = |stride| {
        let mut graph = Graph::new();
        graph.weights("v:4,3,3,3").node("Conv a v -> inner", &[stride]).output("inner").clone()
    };
    let mut graph = Graph::new();
    graph.input("x:1,3,8,8").input("which:").weights("w:3,3,3,3");
    graph.node("Conv x w -> a", &[]);
    let branches =
        [("then_branch", &branch("strides=1,1")), ("else_branch", &branch("strides=2,2"))];
    graph.outer("If which -> y", &branches).output("y");
    let found = lines(&graph.model(), &[]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("-H 6 -W 6 -k 4") && found[0].contains("-u 1"), "{found:?}");
    graph.function("Own", "Conv x w -> y");
    let open = run(&graph.model(), &[]).expect_code(100);
    assert_eq!(open.stdout.lines().count(), 3);
    assert!(open.stderr.contains("inside of the function `Own`"), "{}", open.stderr);
    assert!(open.stderr.contains("hint: put functions in their place"), "{}", open.stderr);
}

#[test]
fn files_that_are_no_models_are_refused_with_one_error() {
    #[track_caller]
    fn refused(bytes: &[u8], message: &str) {
        let run = run(bytes, &[]).expect_code(2);
        assert!(run.stderr.contains(message), "{message}: {}", run.stderr);
        let is = |start: &str| run.stderr.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((is("error: "), is("hint: "), run.stdout.len()), (1, 1, 0), "{}", run.stderr);
    }
    refused(b"", "it has no layers");
    refused(b"# a text\n", "its bytes are not those of Protocol Buffers");
    refused(b"\xff\xff\xff\xff", "longer than the rest");
    refused(&Graph::new().model(), "it has no layers");
    let mut relu = Graph::new();
    refused(&relu.input("x:1,2").node("Relu x -> y", &[]).model(), "failed to find a convolution");
    let whole = small("1,3,16,16").model();
    refused(&whole[..whole.len() - 9], "longer than the rest");
    // A length that the whole file belies.
    let huge = [&[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &whole].concat();
    refused(&huge, "longer than the rest");
    let project = Project::new();
    fs::create_dir(project.path().join("dir.onnx")).expect("made");
    for (name, message) in [("gone.onnx", "No such file"), ("dir.onnx", "it is no file")] {
        let run = project.run(&["problems", name]).expect_code(2);
        assert!(run.stderr.contains(message) && run.stderr.contains("hint: "), "{}", run.stderr);
    }
}

#[test]
fn huge_sizes_take_no_memory() {
    // A tensor that would take terabytes if it were made.
    let mut graph = Graph::new();
    graph.input("x:1,3,8,8").weights("w:8,3,3,3").integers("huge", &[1 << 20, 1 << 22]);
    graph.node("ConstantOfShape huge -> z", &[]).node("Conv x w -> y", &[]).output("y");
    assert_eq!(lines(&graph.output("z").model(), &[]).len(), 1);
    // Sizes that no GPU has memory for.
    for (x, w) in [
        ("1,3,9223372036854775807,8", "8,3,3,3"),
        ("1,3,2147483648,8", "8,3,3,3"),
        ("1,3,8,8", "8,3,4294967296,4294967296"),
        ("1,2147483647,2147483647,2147483647", "1,2147483647,1,1"),
    ] {
        let run = self::run(&one(x, w, "Conv", &[], writer::FLOAT), &[]).expect_code(100);
        assert!(run.stderr.contains("`the/y` (Conv) is left out"), "{}", run.stderr);
    }
}

#[test]
fn a_model_that_takes_too_much_ends_with_one_error() {
    let mut graph = Graph::new();
    graph.input("x:1,3,8,8").weights("w:8,3,3,3").node("Conv x w -> y", &[]).output("y");
    graph.nodes("Relu x -> z", 200_000);
    let project = Project::new();
    fs::write(project.path().join("model.onnx"), graph.model()).expect("written");
    let mut shell = command("sh");
    let limited = format!("ulimit -v 300000; exec '{}' problems model.onnx", binary().display());
    shell.args(["-c", &limited]).current_dir(project.path());
    let run = finish(shell).expect_code(2);
    let expected =
        "error: failed to infer the shapes of `model.onnx`: it took more than 2 GiB or 60 s";
    assert!(run.stderr.starts_with(expected), "{}", run.stderr);
    assert!(run.stderr.contains("\nhint: export the model with fixed sizes"), "{}", run.stderr);
    assert_eq!((run.stderr.lines().count(), run.stdout.len()), (2, 0), "{}", run.stderr);
}
