//! Where something stands in the user's input, and what is wrong there.

use std::fmt;
use std::sync::Arc;

use gfxpack_model::{KeyError, Language};

use crate::license;

/// A file and a line, as every message about input names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The file as the user gave it.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
}

impl Location {
    /// A place in a file.
    #[must_use]
    pub fn new(file: &str, line: usize) -> Self {
        Self { file: file.into(), line }
    }

    /// The place of a byte offset in the file's text.
    #[must_use]
    pub fn of_offset(file: &str, text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        Self::new(file, 1 + before.iter().filter(|&&byte| byte == b'\n').count())
    }

    /// That `problem` is here.
    #[must_use]
    pub fn error(&self, problem: InputFault) -> InputError {
        InputError { location: self.clone(), problem }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Something wrong in a manifest or key list, with its file and line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {problem}")]
pub struct InputError {
    /// Where.
    pub location: Location,
    /// What.
    pub problem: InputFault,
}

/// What can be wrong in a manifest or key list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputFault {
    /// Not TOML or JSON, or not of the expected shape.
    #[error("failed to parse: {0}")]
    Syntax(String),
    /// A line of a key list that is no key.
    #[error("failed to parse: {0}")]
    KeySyntax(String),
    /// A format version that this version does not read.
    #[error("failed to read manifest format {0}: only format 1 is known")]
    Format(i64),
    /// No `[[kernel]]` at all.
    #[error("failed to find any kernel")]
    NoKernels,
    /// A list without any key.
    #[error("failed to find any kernel")]
    NoKeys,
    /// The source's extension names no language.
    #[error("failed to tell the language of `{0}`")]
    Language(String),
    /// A pattern in `targets` that matches no known processor.
    #[error("failed to match target pattern `{0}`: no known processor fits it")]
    TargetPattern(String),
    /// A licence that is none in SPDX's spelling.
    #[error("failed to accept licence `{license}`: {reason}")]
    License {
        /// The licence as written.
        license: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A library that packages are named after, whose name no package can have.
    #[error("failed to accept the library's name `{0}`: it can't be part of a package's name")]
    LibraryName(String),
    /// A define's name is no identifier.
    #[error("failed to accept define `{0}`: it is no identifier")]
    DefineName(String),
    /// A define's value can't be put on a command line of that language.
    #[error("failed to accept the value of define `{name}`")]
    DefineValue {
        /// The define.
        name: String,
        /// The source's language.
        language: Language,
    },
    /// A define with an empty list of values.
    #[error("failed to expand define `{0}`: it has no values")]
    NoValues(String),
    /// `exclude` names a define that the variant does not have.
    #[error("failed to exclude by `{0}`: the variant defines no such name")]
    UnknownDefine(String),
    /// Every combination is excluded.
    #[error("failed to expand `{0}`: no combination is left")]
    EmptyExpansion(String),
    /// The same key twice.
    #[error("failed to accept key `{key}`: it stands at {first} already")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it was seen first.
        first: Location,
    },
    /// Two sources of one name, so that their kernels can't be told apart.
    #[error("failed to accept source `{source_path}`: `{other}` has the same file name")]
    SameName {
        /// The second source.
        source_path: String,
        /// The first one.
        other: String,
    },
    /// The source does not exist.
    #[error("failed to find source `{0}`")]
    MissingSource(String),
    /// A source or include directory that a manifest names does not exist.
    #[error("failed to find `{0}`")]
    MissingPath(String),
    /// Several different files could be the source.
    #[error("failed to choose a source for `{name}`: {} different files have that name", .candidates.len())]
    AmbiguousSource {
        /// The source's file name.
        name: String,
        /// The files.
        candidates: Vec<String>,
    },
    /// The source or a file it includes can't be read or staged.
    #[error("failed to read source `{name}`: {reason}")]
    UnreadableSource {
        /// The source.
        name: String,
        /// The reason, in words.
        reason: String,
    },
    /// Two files of a source that a compiler would see as one.
    #[error("failed to lay out source `{name}`: `{}` and `{}` would both be `{place}`", .files[0], .files[1])]
    SamePlace {
        /// The source.
        name: String,
        /// The files.
        files: Box<[String; 2]>,
        /// Where both would lie.
        place: String,
    },
    /// The key is none that MIOpen can find.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The options can't be split into words.
    #[error("failed to split options `{0}` into words")]
    Options(String),
    /// An option that gfxpack must not pass on.
    #[error("failed to accept option `{0}`: it is not one of those that a key may carry")]
    ForbiddenOption(String),
    /// An option of more bytes than a program can be given.
    #[error("failed to accept option `{option}`: it has {size} bytes, the limit is {limit}")]
    LongOption {
        /// Its beginning.
        option: String,
        /// Its bytes.
        size: usize,
        /// Most bytes of one.
        limit: usize,
    },
    /// More options than a program can be given.
    #[error("failed to accept the options: they take {size} bytes, the limit is {limit}")]
    LongOptions {
        /// What they take on a command line.
        size: usize,
        /// What they may take.
        limit: usize,
    },
}

impl InputError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match &self.problem {
            InputFault::Syntax(_) => "the format is described in docs/manifest.md".to_owned(),
            InputFault::KeySyntax(_) => {
                "write one key a line, as {\"kernel_name\": \"NAME.cl.o\", \"kernel_args\": \" \
                 -DX=1 -mcpu=gfx906\"}; docs/manifest.md has more"
                    .to_owned()
            }
            InputFault::Format(_) => "use a gfxpack that knows this format, or write `format = 1`".to_owned(),
            InputFault::NoKernels => "add a [[kernel]] with its source".to_owned(),
            InputFault::NoKeys => {
                "add a line with a key; if there may be none, --if-empty=ok makes that no error"
                    .to_owned()
            }
            InputFault::Language(_) => {
                "sources end in .cpp (HIP), .cl (OpenCL C) or .s (AMDGCN assembly)".to_owned()
            }
            InputFault::TargetPattern(_) => {
                "`gfxpack targets` lists the processors; patterns look like gfx90a, gfx11* or !gfx90c".to_owned()
            }
            InputFault::License { .. } => license::HINT.to_owned(),
            InputFault::LibraryName(_) => {
                "use lowercase letters, digits, +, - and .; or leave out `reader`".to_owned()
            }
            InputFault::DefineName(_) => "use letters, digits and _".to_owned(),
            InputFault::DefineValue { language: Language::Assembly, .. } => {
                "assembly symbols (-defsym) take integers".to_owned()
            }
            InputFault::DefineValue { .. } => {
                "values are integers, true, false, or text without blanks and quotes; anything else can stand in `options`".to_owned()
            }
            InputFault::NoValues(_) => "give it values, or take it out".to_owned(),
            InputFault::UnknownDefine(_) => "spell it as in `defines` of the same variant".to_owned(),
            InputFault::EmptyExpansion(_) => "loosen `exclude`, or take the variant out".to_owned(),
            InputFault::DuplicateKey { .. } => {
                "take one of the two out; `gfxpack harvest A B -o keys.jsonl` makes one list of several, \
                 with each key once"
                    .to_owned()
            }
            InputFault::SameName { .. } => {
                "rename one: a kernel's name is its source's file name".to_owned()
            }
            InputFault::MissingSource(_) => {
                "check the path, or give the directory that holds it (--source-dir)".to_owned()
            }
            InputFault::MissingPath(_) => {
                "check the path: sources and include-dirs are relative to the manifest's directory"
                    .to_owned()
            }
            InputFault::AmbiguousSource { candidates, .. } => {
                format!("give a --source-dir that holds only one of: {}", candidates.join(", "))
            }
            InputFault::UnreadableSource { .. } => {
                "see that it may be read, or mend it; an #include may lead to what lies below the manifest's directory, \
                 its include-dirs, or --source-dir; assembly has to name a file literally, by its path \
                 from the manifest's directory (from the source's, for keys) or an include-dir"
                    .to_owned()
            }
            InputFault::SamePlace { .. } => {
                "give one of the two another name".to_owned()
            }
            InputFault::Key(error) => error.hint().to_owned(),
            InputFault::Options(_) => "close the quote; a word can't begin with #".to_owned(),
            InputFault::ForbiddenOption(_) => "take it out: options may set macros, include directories below the source's, warnings and \
                 code generation, as docs/options.md lists them; target, output and other files are gfxpack's \
                 to choose"
                    .to_owned(),
            InputFault::LongOption { .. } | InputFault::LongOptions { .. } => {
                "no program can be started with so much; put it into a header".to_owned()
            }
        }
    }
}
