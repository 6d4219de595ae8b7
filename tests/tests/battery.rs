//! What can decide an object does: after any change, a build with the same
//! cache makes what a build with a new one makes, and a compiler in the
//! source's own directory.
//!
//! The cases are data, in `battery/`: a source, the files that it may read,
//! what changes, and whether there is an object before and after.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gfxpack_tests::project::{Project, tool};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Battery {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Begins with its source's extension.
    name: String,
    #[serde(default)]
    options: String,
    /// What comes of the source before the change, and after it.
    #[serde(default)]
    before: Right,
    #[serde(default)]
    after: Right,
    /// Whether the change changes nothing.
    #[serde(default)]
    same: bool,
    source: String,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    change: BTreeMap<String, Content>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Right {
    #[default]
    Object,
    Refused,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    /// `false`: there is none any more.
    Gone(bool),
    Text(String),
}

impl Case {
    fn source(&self) -> String {
        let extension = self.name.split('-').next().unwrap();
        format!("{0}/{0}.{extension}", self.name)
    }

    /// Text with what it says of places filled in: `{dir}`, the source's
    /// directory from where its manifest lies; `{name}`, its name; `{lib}` and
    /// `{out}`, that directory and one outside by their absolute paths.
    fn fill(&self, root: &Path, text: &str) -> String {
        let place = |below: &str| root.join(below).join(&self.name).display().to_string();
        text.replace("{out}", &place("out"))
            .replace("{lib}", &place("lib"))
            .replace("{name}", &self.name)
            .replace("{dir}", &format!("{}/", self.name))
    }

    fn write(&self, root: &Path, files: &BTreeMap<String, Content>) {
        for (name, content) in files {
            let name = self.fill(root, name);
            let path = match name.strip_prefix("@out/") {
                Some(below) => root.join("out").join(&self.name).join(below),
                None => root.join("lib").join(&self.name).join(name),
            };
            let directory = path.parent().unwrap();
            fs::create_dir_all(directory).unwrap();
            let path = directory.canonicalize().unwrap().join(path.file_name().unwrap());
            if path.symlink_metadata().is_ok() {
                fs::remove_file(&path).unwrap();
            }
            let text = match content {
                Content::Text(text) => self.fill(root, text),
                Content::Gone(stays) => {
                    assert!(!stays, "{}: what is to be there has a text", self.name);
                    continue;
                }
            };
            if let Some(target) = text.strip_prefix("@link ") {
                symlink(target, path).unwrap();
            } else if let Some(digits) = text.strip_prefix("@bytes ") {
                let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
                let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
                fs::write(path, bytes).unwrap();
            } else {
                fs::write(path, text).unwrap();
            }
        }
    }
}

/// The objects of a build, by kernel, and the exit code.
fn build(project: &Project, cache: &str, out: &str) -> (BTreeMap<String, String>, Option<i32>) {
    let root = project.path();
    let [cache, out] = [cache, out].map(|name| root.join(name));
    let mut command = project.command(&["build", "--target", "gfx906_60", "--jobs", "2"]);
    command.args(["--manifest", "kernels.toml", "--cache-dir"]).arg(cache);
    let run = gfxpack_tests::project::finish({
        command.arg("--out").arg(&out).current_dir(root.join("lib"));
        command
    });
    let kdb: PathBuf = out.join("kdb/gfx906_60.kdb");
    let query =
        ["-separator", " ", kdb.to_str().unwrap(), "select kernel_name, kernel_hash from kern_db"];
    let rows = tool("sqlite3", &query, root);
    let pair = |line: &str| line.split_once(".o ").map(|(a, b)| (a.to_owned(), b.to_owned()));
    (rows.lines().filter_map(pair).collect(), run.code)
}

#[test]
fn what_changed_decides_with_an_old_cache_as_with_a_new_one() {
    let text = include_str!("../battery/objects.toml");
    let cases = toml::from_str::<Battery>(text).unwrap().case;
    let project = Project::new();
    let root = project.path().canonicalize().unwrap();
    let mut manifest =
        "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n".to_owned();
    for case in &cases {
        project.write(&format!("lib/{}", case.source()), &case.fill(&root, &case.source));
        fs::create_dir_all(root.join("out").join(&case.name)).unwrap();
        case.write(&root, &case.files);
        write!(manifest, "[[kernel]]\nsource = \"{}\"\n", case.source()).unwrap();
        if !case.options.is_empty() {
            writeln!(manifest, "options = '{}'", case.fill(&root, &case.options)).unwrap();
        }
    }
    project.write("lib/kernels.toml", &manifest);
    let (before, _) = build(&project, "cache", "before");
    cases.iter().for_each(|case| case.write(&root, &case.change));
    let (after, _) = build(&project, "cache", "after");
    let (fresh, _) = build(&project, "new", "fresh");
    let mut wrong = Vec::new();
    for case in &cases {
        let extension = case.name.split('-').next().unwrap();
        let name = format!("{}.{extension}", case.name);
        let of = |objects: &BTreeMap<String, String>| objects.get(&name).cloned();
        let right = |object: &Option<String>| match object {
            Some(_) => Right::Object,
            None => Right::Refused,
        };
        let (before, after, fresh) = (of(&before), of(&after), of(&fresh));
        let both = before.is_some() && fresh.is_some();
        if (right(&before), right(&fresh)) != (case.before, case.after)
            || after != fresh
            || both && (before == fresh) != case.same
        {
            wrong.push((&case.name, before, after, fresh));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
