//! The cases, as in the files beside this one, and their directories.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde::Deserialize;

const FILES: [&str; 2] = [include_str!("opencl_c_and_hip.toml"), include_str!("assembly.toml")];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Of cases that name none.
    languages: Vec<Language>,
    case: Vec<Case>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Language {
    OpenclC,
    Hip,
    Assembly,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    name: String,
    #[serde(default)]
    languages: Vec<Language>,
    /// The version of clang that it needs, where that is not the default one.
    #[serde(default)]
    pub(crate) clang: Option<u32>,
    #[serde(default)]
    options: String,
    /// What comes of the source before the change, and after it.
    #[serde(default)]
    before: Right,
    #[serde(default)]
    after: Right,
    /// Whether the change changes nothing.
    #[serde(default)]
    pub(crate) same: bool,
    source: String,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    change: BTreeMap<String, Content>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Right {
    #[default]
    Object,
    /// By the compiler.
    Refused,
    /// For what it reads that is not among the sources.
    ReadsOutside,
    /// An object for which what is not among the sources is not there.
    Hidden,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Content {
    /// `false`: there is none any more.
    Gone(bool),
    Text(String),
}

impl Language {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::OpenclC => "cl",
            Self::Hip => "cpp",
            Self::Assembly => "s",
        }
    }

    /// A kernel that does next to nothing; with V in it, if it is no assembly.
    fn kernel(self) -> &'static str {
        match self {
            Self::OpenclC => "__kernel void k(__global int *x) { *x = V; }",
            Self::Hip => "extern \"C\" __attribute__((global)) void k(int *x) { *x = V; }",
            Self::Assembly => {
                ".text\n.globl k\n.p2align 8\n.type k,@function\nk:\n s_endpgm\n\
                 .rodata\n.p2align 6\n.amdhsa_kernel k\n .amdhsa_next_free_vgpr 4\n \
                 .amdhsa_next_free_sgpr 8\n.end_amdhsa_kernel"
            }
        }
    }
}

/// A case in one language.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Also its directory's.
    pub(crate) name: String,
    pub(crate) language: Language,
    pub(crate) case: Case,
}

/// All cases in all of their languages.
pub(crate) fn kernels() -> Vec<Kernel> {
    let of_file = |text: &&str| {
        let File { languages, case } = toml::from_str(text).unwrap();
        case.into_iter().flat_map(move |case| of_case(&languages, &case))
    };
    FILES.iter().flat_map(of_file).collect()
}

fn of_case(languages: &[Language], case: &Case) -> Vec<Kernel> {
    let own = if case.languages.is_empty() { languages } else { &case.languages };
    let kernel = |language: &Language| Kernel {
        name: format!("{}-{}", language.extension(), case.name),
        language: *language,
        case: case.clone(),
    };
    own.iter().map(kernel).collect()
}

impl Kernel {
    /// The source's name in a manifest.
    pub(crate) fn source(&self) -> String {
        format!("{0}/{0}.{1}", self.name, self.language.extension())
    }

    pub(crate) fn right(&self, changed: bool) -> Right {
        if changed { self.case.after } else { self.case.before }
    }

    /// Whether a link among its files leads out of the sources.
    pub(crate) fn has_link_to_outside(&self) -> bool {
        let mut files = self.case.files.values().chain(self.case.change.values());
        files.any(|file| matches!(file, Content::Text(text) if text.starts_with("@link {out}")))
    }

    /// Its lines in a manifest.
    pub(crate) fn manifest_entry(&self, root: &Path) -> String {
        let options = self.fill(root, &self.case.options);
        format!("[[kernel]]\nsource = \"{}\"\noptions = '''{options}'''\n", self.source())
    }

    /// Writes the source and its files, as they are before the change.
    pub(crate) fn write(&self, root: &Path) {
        fs::create_dir_all(root.join("out").join(&self.name)).unwrap();
        self.put(root, &format!("{{name}}.{}", self.language.extension()), &self.case.source);
        self.write_all(root, &self.case.files);
    }

    pub(crate) fn change(&self, root: &Path) {
        self.write_all(root, &self.case.change);
    }

    fn write_all(&self, root: &Path, files: &BTreeMap<String, Content>) {
        for (name, content) in files {
            match content {
                Content::Text(text) => self.put(root, name, text),
                Content::Gone(stays) => {
                    assert!(!stays, "{}: what is to be there has a text", self.name);
                    fs::remove_file(self.path(root, name)).unwrap();
                }
            }
        }
    }

    fn put(&self, root: &Path, name: &str, text: &str) {
        let path = self.path(root, name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let path = path.parent().unwrap().canonicalize().unwrap().join(path.file_name().unwrap());
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).unwrap();
        }
        if let Some(target) = text.strip_prefix("@link ") {
            symlink(self.fill(root, target), path).unwrap();
        } else if let Some(digits) = text.strip_prefix("@bytes ") {
            let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            fs::write(path, (0..digits.len()).step_by(2).map(byte).collect::<Vec<u8>>()).unwrap();
        } else {
            fs::write(path, bytes(&self.fill(root, text))).unwrap();
        }
    }

    /// The path of a file that a case names: beside its source, outside of the
    /// library, in the directory that its manifest names for headers, or in one
    /// that the compiler itself searches.
    fn path(&self, root: &Path, name: &str) -> std::path::PathBuf {
        let below = |text: &str| OsString::from_vec(bytes(&self.fill(root, text)));
        if let Some(name) = name.strip_prefix("@out/") {
            root.join("out").join(&self.name).join(below(name))
        } else if let Some(name) = name.strip_prefix("@shared/") {
            root.join("lib/shared").join(below(name))
        } else if let Some(name) = name.strip_prefix("@system/") {
            root.join("system").join(below(name))
        } else {
            root.join("lib").join(&self.name).join(below(name))
        }
    }

    /// Text with what it says of places filled in: `{dir}`, the source's
    /// directory from where its manifest lies; `{name}`, its name; `{lib}` and
    /// `{out}`, that directory and one outside by their absolute paths;
    /// `{long}`, a name of many letters.
    fn fill(&self, root: &Path, text: &str) -> String {
        let place = |below: &str| root.join(below).join(&self.name).display().to_string();
        text.replace("{kernel}", self.language.kernel())
            .replace("{out}", &place("out"))
            .replace("{lib}", &place("lib"))
            .replace("{name}", &self.name)
            .replace("{dir}", &format!("{}/", self.name))
            .replace("{long}", &"long".repeat(60))
    }
}

/// A text's bytes, with one that is no text where `{byte}` stands.
fn bytes(text: &str) -> Vec<u8> {
    text.split("{byte}").map(str::as_bytes).collect::<Vec<_>>().join(&0xff)
}
