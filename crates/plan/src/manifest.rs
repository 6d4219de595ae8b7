//! The kernel manifest that people write (TOML): the sources, and the argument sets with which each
//! is built.

use std::path::PathBuf;

use gfxpack_model::processors::PROCESSORS;
use gfxpack_model::{Error, Language};
use serde::Deserialize;
use toml::Spanned;

use crate::consumer::Consumer;
use crate::license;
use crate::location::Location;

/// The manifest format that this version reads.
pub const FORMAT: i64 = 1;

/// A manifest as written, checked field by field but not yet expanded.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file's name, for messages.
    pub file: String,
    /// The `[library]` table.
    pub library: Library,
    /// The kernels in the order written.
    pub kernels: Vec<Kernel>,
}

/// The `[library]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Library {
    /// The library's name.
    pub name: String,
    /// Its version, which is also the packages' version unless that is given.
    pub version: String,
    /// SPDX licence expression of every source without one of its own.
    pub license: String,
    /// Copyright holders, one line.
    #[serde(default)]
    pub copyright: Option<String>,
    /// The packages' maintainer: `Name <mail>`.
    #[serde(default)]
    pub maintainer: Option<String>,
    /// Home page.
    #[serde(default)]
    pub homepage: Option<String>,
    /// A paragraph for package descriptions.
    #[serde(default)]
    pub description: Option<String>,
    /// The library that looks up these kernels at run time.
    #[serde(default, rename = "reader")]
    pub consumer: Consumer,
    /// Include directories, relative to the manifest.
    #[serde(default)]
    pub include_dirs: Vec<Spanned<PathBuf>>,
}

/// One `[[kernel]]`: a source and its variants.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The position in the manifest.
    pub location: Location,
    /// The source, relative to the manifest.
    pub source: PathBuf,
    /// The source's file name, from which the kernel name is made.
    pub source_name: String,
    /// The source language, from the extension.
    pub language: Language,
    /// SPDX licence, if not the library's.
    pub license: Option<String>,
    /// Copyright holders, if not the library's.
    pub copyright: Option<String>,
    /// Whether the source was generated, so that people edit another file.
    pub generated: bool,
    /// The processors that it is built for.
    pub targets: TargetFilter,
    /// Text before the options of every variant, byte for byte.
    pub options: String,
    /// Argument sets; if there are none, one key with [`Kernel::options`] alone.
    pub variants: Vec<Variant>,
}

/// One `[[kernel.variant]]`: literal options times a matrix of defines.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The position in the manifest.
    pub location: Location,
    /// Literal option strings; empty means one empty string.
    pub options: Vec<String>,
    /// Defines in the order written, each with its values.
    pub defines: Vec<(String, Vec<Value>)>,
    /// Combinations to leave out: those that match all pairs of an entry.
    pub exclude: Vec<Vec<(String, Value)>>,
    /// The processors that this variant is built for, of those of the kernel.
    pub targets: TargetFilter,
}

/// The value of a define.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `-DNAME=TEXT`.
    Text(String),
    /// `-DNAME=NUMBER`.
    Integer(i64),
    /// `-DNAME` for true, nothing for false.
    Flag(bool),
}

/// Globs over processor names; `!` excludes. Empty: every processor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetFilter(Vec<String>);

impl TargetFilter {
    /// Whether the processor passes: no `!` pattern matches, and another pattern does or there is
    /// no other.
    pub fn matches(&self, processor: &str) -> bool {
        let (excluding, including): (Vec<_>, Vec<_>) =
            self.0.iter().partition(|pattern| pattern.starts_with('!'));
        !excluding.iter().any(|pattern| glob(&pattern[1..], processor))
            && (including.is_empty() || including.iter().any(|pattern| glob(pattern, processor)))
    }
}

/// Whether a library's name can also be the name of a package and a directory.
///
/// Source: Debian Policy 4.7.0, 5.6.1.
fn names_a_package(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() > 1
        && name.bytes().next().is_some_and(allowed)
        && name.bytes().all(|byte| allowed(byte) || b"+-.".contains(&byte))
}

/// `*` matches any characters.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && glob(tail, &rest[at..]))
        }),
    }
}

/// This is read first, since the fields of other formats are not known.
#[derive(Deserialize)]
struct RawFormat {
    format: Spanned<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawManifest {
    #[serde(rename = "format")]
    _format: i64,
    library: Spanned<Library>,
    #[serde(default)]
    kernel: Vec<Spanned<RawKernel>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKernel {
    source: Spanned<PathBuf>,
    license: Option<String>,
    copyright: Option<String>,
    #[serde(default)]
    generated: bool,
    targets: Option<Spanned<Vec<String>>>,
    #[serde(default)]
    options: String,
    #[serde(default)]
    variant: Vec<Spanned<RawVariant>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    #[serde(default)]
    options: Vec<String>,
    defines: Option<Spanned<toml::Table>>,
    #[serde(default)]
    exclude: Vec<Spanned<toml::Table>>,
    targets: Option<Spanned<Vec<String>>>,
}

/// Reads a manifest's text. `file` is used in messages only.
///
/// # Errors
/// With the file and line of the first error: TOML syntax, an unknown field, another
/// format version, an unknown language, a define that is no list of scalars, a target pattern that
/// matches nothing.
pub fn parse(file: &str, text: &str) -> Result<Manifest, Error> {
    let at = |span: std::ops::Range<usize>| Location::of_offset(file, text, span.start);
    if let Ok(RawFormat { format }) = toml::from_str(text)
        && *format.get_ref() != FORMAT
    {
        return Err(at(format.span()).fault(
            format!("failed to read manifest format {}: only format 1 is known", format.get_ref()),
            "use a gfxpack that knows this format, or write `format = 1`",
        ));
    }
    let raw: RawManifest = toml::from_str(text).map_err(|error| {
        let location = at(error.span().unwrap_or(0..0));
        syntax(&location, &error.message().trim().replace('\n', ", "))
    })?;
    let library_at = at(raw.library.span());
    let library = raw.library.into_inner();
    check_license(&library.license, &library_at)?;
    // Only rocFFT itself can name its kernels, for FFT plans.
    if library.consumer == Consumer::Rocfft {
        let problem = "unknown reader `rocfft`, expected `miopen` or `runtime`";
        return Err(syntax(&library_at, problem));
    }
    let names_packages = library.consumer.properties().name_template.contains("{library}");
    if names_packages && !names_a_package(&library.name) {
        let name = &library.name;
        return Err(library_at.fault(
            format!(
                "failed to accept the library's name `{name}`: it can't be part of a package's name"
            ),
            "use lowercase letters, digits, +, - and .; or leave out `reader`",
        ));
    }
    let kernels = raw
        .kernel
        .into_iter()
        .map(|kernel| checked_kernel(kernel, &at))
        .collect::<Result<Vec<_>, Error>>()?;
    if kernels.is_empty() {
        let hint = "add a [[kernel]] with its source";
        return Err(Location::new(file, 1).fault("failed to find any kernel", hint));
    }
    Ok(Manifest { file: file.to_owned(), library, kernels })
}

fn syntax(at: &Location, problem: &str) -> Error {
    at.fault(format!("failed to parse: {problem}"), "the format is described in docs/manifest.md")
}

type At<'a> = dyn Fn(std::ops::Range<usize>) -> Location + 'a;

fn check_license(license: &str, at: &Location) -> Result<(), Error> {
    license::check(license).map_err(|reason| {
        at.fault(format!("failed to accept licence `{license}`: {reason}"), license::HINT)
    })
}

fn checked_kernel(kernel: Spanned<RawKernel>, at: &At<'_>) -> Result<Kernel, Error> {
    let location = at(kernel.span());
    let kernel = kernel.into_inner();
    kernel.license.iter().try_for_each(|license| check_license(license, &location))?;
    let source_at = at(kernel.source.span());
    let source = kernel.source.into_inner();
    let source_name =
        source.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let language = Language::of_source(&source_name).ok_or_else(|| {
        source_at.fault(
            format!("failed to tell the language of `{}`", source.display()),
            "sources end in .cpp (HIP), .cl (OpenCL C) or .s (AMDGCN assembly)",
        )
    })?;
    let variants = kernel
        .variant
        .into_iter()
        .map(|variant| {
            let location = at(variant.span());
            checked_variant(variant.into_inner(), location, language, at)
        })
        .collect::<Result<_, _>>()?;
    Ok(Kernel {
        location,
        source,
        source_name,
        language,
        license: kernel.license,
        copyright: kernel.copyright,
        generated: kernel.generated,
        targets: checked_filter(kernel.targets, at)?,
        options: kernel.options,
        variants,
    })
}

fn checked_filter(
    patterns: Option<Spanned<Vec<String>>>,
    at: &At<'_>,
) -> Result<TargetFilter, Error> {
    let Some(patterns) = patterns else { return Ok(TargetFilter::default()) };
    let location = at(patterns.span());
    let patterns = patterns.into_inner();
    for pattern in &patterns {
        let plain = pattern.strip_prefix('!').unwrap_or(pattern);
        if !PROCESSORS.iter().any(|processor| glob(plain, processor.name)) {
            return Err(location.fault(
                format!("failed to match target pattern `{pattern}`: no known processor fits it"),
                "`gfxpack targets` lists the processors; patterns look like gfx90a, gfx11* or \
                 !gfx90c",
            ));
        }
    }
    Ok(TargetFilter(patterns))
}

fn checked_variant(
    raw: RawVariant,
    location: Location,
    language: Language,
    at: &At<'_>,
) -> Result<Variant, Error> {
    let mut defines = Vec::new();
    if let Some(table) = raw.defines {
        let here = at(table.span());
        for (name, values) in table.into_inner() {
            let values = match values {
                toml::Value::Array(values) => values,
                single => vec![single],
            };
            let values = values
                .into_iter()
                .map(|value| checked_value(&name, value, language, &here))
                .collect::<Result<Vec<_>, _>>()?;
            if values.is_empty() {
                return Err(here.fault(
                    format!("failed to expand define `{name}`: it has no values"),
                    "give it values, or take it out",
                ));
            }
            defines.push((name, values));
        }
    }
    let mut exclude = Vec::new();
    for table in raw.exclude {
        let here = at(table.span());
        let mut pairs = Vec::new();
        for (name, value) in table.into_inner() {
            if !defines.iter().any(|(define, _)| *define == name) {
                return Err(here.fault(
                    format!("failed to exclude by `{name}`: the variant defines no such name"),
                    "spell it as in `defines` of the same variant",
                ));
            }
            let value = checked_value(&name, value, language, &here)?;
            pairs.push((name, value));
        }
        exclude.push(pairs);
    }
    Ok(Variant {
        location,
        options: raw.options,
        defines,
        exclude,
        targets: checked_filter(raw.targets, at)?,
    })
}

fn checked_value(
    name: &str,
    value: toml::Value,
    language: Language,
    here: &Location,
) -> Result<Value, Error> {
    let identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !identifier {
        let message = format!("failed to accept define `{name}`: it is no identifier");
        return Err(here.fault(message, "use letters, digits and _"));
    }
    match value {
        toml::Value::Integer(number) => Ok(Value::Integer(number)),
        toml::Value::Boolean(flag) if language != Language::Assembly => Ok(Value::Flag(flag)),
        toml::Value::String(text)
            if language != Language::Assembly
                && !text.is_empty()
                && !text.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c)) =>
        {
            Ok(Value::Text(text))
        }
        _ => Err(here.fault(
            format!("failed to accept the value of define `{name}`"),
            match language {
                Language::Assembly => "assembly symbols (-defsym) take integers",
                Language::Hip | Language::OpenclC => {
                    "values are integers, true, false, or text without blanks and quotes; \
                     anything else can stand in `options`"
                }
            },
        )),
    }
}
