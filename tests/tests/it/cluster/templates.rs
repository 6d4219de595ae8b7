//! The templates in ci/: their providers' schemas accept them, and every gfxpack command in them is
//! valid.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::project::{Project, tool, workspace};

/// yamllint's own rules, without those on taste.
const RULES: &str = "{extends: default, rules: {line-length: disable, document-start: disable, \
                     truthy: {check-keys: false}}}";

/// Says what a Groovy parser could not read.
const GROOVY: &str = r#"
import sys, tree_sitter, tree_sitter_groovy
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_groovy.language()))
text = open(sys.argv[1], "rb").read()
def wrong(node):
    if node.type == "ERROR" or node.is_missing:
        yield node
    for child in node.children:
        yield from wrong(child)
found = [f"line {node.start_point[0] + 1}: {text[node.start_byte:node.end_byte][:80]}" for node in wrong(parser.parse(text).root_node)]
if found:
    sys.exit("\n".join(found))
"#;

fn linter(name: &str) -> PathBuf {
    workspace().join("target/tools/ci").join("bin").join(name)
}

fn lint(name: &str, args: &[&str]) {
    let program = linter(name);
    tool(program.to_str().expect("a plain path"), args, workspace());
}

fn templates() -> Vec<PathBuf> {
    let dirs = ["ci", "ci/shards"].map(|dir| workspace().join(dir));
    let files = dirs.iter().flat_map(|dir| fs::read_dir(dir).expect("readable").flatten());
    let mut files: Vec<PathBuf> =
        files.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yml" || end == "yaml")
}

#[test]
fn the_providers_linters_accept_the_templates() {
    let mut seen = [0; 5];
    for file in templates() {
        let path = file.to_str().expect("a plain path");
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if is_yaml(&file) {
            lint("yamllint", &["--strict", "--config-data", RULES, path]);
        }
        let schema = match name {
            "github-actions.yml" => Some("vendor.github-workflows"),
            "gitlab.yml" => Some("vendor.gitlab-ci"),
            _ => None,
        };
        if let Some(schema) = schema {
            lint("check-jsonschema", &["--builtin-schema", schema, path]);
            seen[usize::from(name == "gitlab.yml")] += 1;
        }
        if name == "kubernetes.yaml" {
            lint("kubernetes-validate", &["--strict", path]);
            seen[2] += 1;
        }
        if name == "Jenkinsfile" {
            lint("python", &["-c", GROOVY, path]);
            seen[3] += 1;
        }
        if name == "Containerfile" {
            lint("hadolint", &[path]);
            seen[4] += 1;
        }
    }
    assert_eq!(seen, [2, 2, 1, 1, 1]);
}

/// The arguments of a command up to what ends it in a shell or in a template's
/// own quotes; variables stand for a number.
fn arguments_in(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = line.trim_end_matches(['\'', '"', ')', ',']).to_owned();
    for (variable, value) in [
        ("${{ matrix.shard }}", "1"),
        ("${{ strategy.job-total }}", "8"),
        ("$((JOB_COMPLETION_INDEX + 1))", "1"),
        ("$SLURM_ARRAY_TASK_ID", "1"),
        ("$SHARDS", "8"),
        ("$SLURM_CPUS_PER_TASK", "4"),
        ("$CI_NODE_INDEX", "1"),
        ("$CI_NODE_TOTAL", "8"),
        ("${index}", "1"),
        ("${count}", "8"),
    ] {
        rest = rest.replace(variable, value);
    }
    for word in rest.split_whitespace() {
        if matches!(word, "||" | "&&" | ";" | "|") {
            break;
        }
        found.push(word.trim_matches('"').to_owned());
    }
    found
}

#[test]
fn every_command_in_the_templates_is_valid() {
    let project = Project::new();
    let mut commands = 0;
    for file in
        templates().iter().filter(|file| file.parent().is_some_and(|dir| dir.ends_with("shards")))
    {
        // A folded command is one line to the shell.
        let text = fs::read_to_string(file)
            .expect("readable")
            .replace("--out out\n          --shard", "--out out --shard");
        let mut subcommands = Vec::new();
        for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', '/'])) {
            let Some(at) = line.find("gfxpack ") else { continue };
            let named = arguments_in(&line[at + "gfxpack ".len()..]);
            let mut arguments: Vec<&str> = named.iter().map(String::as_str).collect();
            subcommands.push(named[0].clone());
            // Help is printed where everything before it was understood.
            arguments.push("--help");
            let run = project.run(&arguments).expect_code(0);
            assert!(run.stdout.contains("Usage: gfxpack"), "{}: {named:?}", file.display());
            commands += 1;
        }
        assert!(subcommands.contains(&"build".to_owned()), "{}: {subcommands:?}", file.display());
    }
    assert!(commands >= 13, "{commands}");
}
