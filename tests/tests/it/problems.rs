//! `gfxpack problems`: lines from networks, models, logs and databases.

use std::fs;

use crate::support::project::Project;

const CONV: &str =
    "conv -n 1 -c 3 -H 8 -W 8 -k 4 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -m conv -g 1 -F 1";

#[test]
fn printed_problems_are_read_back_unchanged() {
    let project = Project::new();
    let options = ["--batch", "1,4", "--type", "fp32,fp16", "--layout", "nchw,nhwc"];
    let arguments = ["problems", "resnet18", "mobilenet-v2", "--direction", "training"];
    let arguments = [&arguments[..], &options].concat();
    let printed = project.run(&arguments).expect_code(0).stdout;
    assert!(printed.lines().count() > 300, "{printed}");
    assert!(printed.lines().all(|line| line.starts_with("MIOpenDriver ")), "{printed}");
    project.run(&[&arguments[..], &["--out", "list.txt"]].concat()).expect_code(0);
    assert_eq!(project.text("list.txt"), printed);
    let again = project.run(&["problems", "--problems", "list.txt"]).expect_code(0);
    assert_eq!(again.stdout, printed);
    // Any order, and without the program's name.
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.reverse();
    let bare = lines.join("\n").replace("MIOpenDriver ", "");
    project.write("bare.txt", &bare);
    let again = project.run(&["problems", "--problems", "bare.txt", "--problems", "list.txt"]);
    assert_eq!(again.expect_code(0).stdout, printed);
}

#[test]
fn logs_databases_and_networks_make_one_list() {
    let project = Project::new();
    let log = format!(
        "Epoch 1\nMIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver {CONV} -t 1\n"
    );
    project.write("run.log", &log);
    project.write(
        "gfx906_60.db.txt",
        "variant1=A:1\n2x64x28x28x1x3x3x1x256x32x1x1x0x2x2x0x1x1x0x0x1xNCHWxFP32xB=A:1\n",
    );
    let arguments =
        ["problems", "whisper-tiny", "--problems", "run.log", "--problems", "gfx906_60.db.txt"];
    let run = project.run(&arguments).expect_code(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 2 + 1 + 4, "{}", run.stdout);
    assert!(lines.contains(&format!("MIOpenDriver {CONV}").as_str()));
    assert!(
        run.stderr.contains("gfx906_60.db.txt: 1 record skipped, the first in line 1"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("7 problems"), "{}", run.stderr);
    let json = project.run(&[&arguments[..], &["--json", "-"]].concat()).expect_code(0);
    assert_eq!(json.of_type("problem").len(), 7);
    assert_eq!(json.of_type("problem-file")[1]["passed_over"], 1);
    assert_eq!(json.of_type("problems")[0]["problems"], 7);
}

#[test]
fn what_can_be_read_is_taken_and_the_rest_told() {
    let project = Project::new();
    project.write(
        "run.sh",
        &format!(
            "set -e\n\"MIOpenDriver {CONV}\"\nMIOPEN_FIND_MODE=1 ./bin/MIOpenDriver pool \\\n -n 1 2>&1 | tee x\n\
             MIOpenDriver conv -I CHWN\nMIOpenDriver conv -n $N\nMIOpenDriver conv -O CHWN\n\
             ['MIOpenDriver', 'lrn', '-n', '1']\n"
        ),
    );
    let args = ["problems", "--problems", "run.sh"];
    let run = project.run(&args).expect_code(0);
    assert_eq!(run.stdout.lines().count(), 3, "{}", run.stdout);
    let warnings: Vec<&str> =
        run.stderr.lines().filter(|line| line.starts_with("warning: run.sh:")).collect();
    assert_eq!(warnings.len(), 2, "{}", run.stderr);
    assert!(warnings[0].contains("run.sh:5: failed to read `-I CHWN`"), "{warnings:?}");
    assert!(warnings[0].ends_with("(2 such lines): MIOpenDriver conv -I CHWN"), "{warnings:?}");
    let json = project.run(&[&args[..], &["--json", "-"]].concat()).expect_code(0);
    assert_eq!(json.of_type("problem-file")[0]["skipped"][0]["lines"], 2);
    let strict = project.run(&[&args[..], &["--strict"]].concat()).expect_code(2);
    assert_eq!(strict.stdout, "");
    assert!(strict.stderr.contains("`run.sh:5` and 2 further lines"), "{}", strict.stderr);
}

#[test]
fn unreadable_problems_are_reported_with_position_and_hint() {
    let project = Project::new();
    project.write("list.txt", "# nothing\nconv -n 0\n");
    let refused = |arguments: &[&str], message: &str, hint: &str| {
        let run = project.run(&[&["problems"], arguments].concat()).expect_code(2);
        assert!(run.stderr.contains(message), "{}", run.stderr);
        assert!(run.stderr.contains(hint), "{}", run.stderr);
        assert_eq!(run.stdout, "");
    };
    refused(
        &["--problems", "list.txt"],
        "failed to read `list.txt:2`: failed to accept the problem: batchsize is 0",
        "hint: sizes, strides, dilations and groups are from 1",
    );
    refused(&["resnet51"], "failed to find the network `resnet51`", "hint: `resnet50` is there");
    refused(&["gpt"], "failed to find the network `gpt`", "lists all; --problems FILE");
    refused(&[], "required", "--list");
    refused(&["--problems", "list.txt", "--batch", "2"], "required", "NETWORK");
    refused(&["resnet50", "--batch", "0"], "invalid value '0'", "--help");
    fs::write(project.path().join("nothing.txt"), "# nothing\n").unwrap();
    refused(
        &["--problems", "nothing.txt"],
        "failed to find a problem in `nothing.txt`",
        "MIOPEN_ENABLE_LOGGING_CMD",
    );
}

#[test]
fn every_network_that_is_listed_has_problems_and_a_source() {
    let project = Project::new();
    let json = project.run(&["problems", "--list", "--json", "-"]).expect_code(0);
    let networks = json.of_type("network");
    assert!(networks.len() >= 16);
    for network in &networks {
        let name = network["name"].as_str().expect("a name");
        let made = format!("by packaging/problems/make.py {name}");
        let source = network["source"].as_str().unwrap_or_default();
        assert!(source.ends_with(&made) || source.contains("arXiv:"), "{network}");
        let run = project.run(&["problems", name]).expect_code(0);
        assert!(run.stdout.lines().count() >= 2, "{name}: {}", run.stdout);
    }
    let listed = project.run(&["problems", "--list"]).expect_code(0).stdout;
    assert!(listed.contains("resnet50              ResNet-50 v1.5, 3x224x224\n"), "{listed}");
}
