//! Expands a manifest to the keys of one processor's kdb.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use gfxpack_model::{Error, KernelKey, Language};

use crate::arguments;
use crate::key_list::KeyRequest;
use crate::location::Location;
use crate::manifest::{Kernel, Manifest, Value, Variant};

/// All keys of the manifest for one processor, in the order written.
///
/// # Errors
/// If a variant expands to nothing, if two entries give the same key or use
/// different sources of one name, and if MIOpen could never find a key.
pub fn expand(manifest: &Manifest, processor: &str) -> Result<Vec<KeyRequest>, Error> {
    let mut by_name: HashMap<&str, &Kernel> = HashMap::new();
    let mut seen: HashMap<Arc<KernelKey>, Location> = HashMap::new();
    let mut requests = Vec::new();
    for kernel in &manifest.kernels {
        if let Some(other) = by_name.insert(&kernel.source_name, kernel)
            && other.source != kernel.source
        {
            let (source, other) = (kernel.source.display(), other.source.display());
            return Err(kernel.location.fault(
                format!("failed to accept source `{source}`: `{other}` has the same file name"),
                "rename one: a kernel's name is its source's file name",
            ));
        }
        let included = kernel.targets.matches(processor);
        let source: Arc<Path> = kernel.source.as_path().into();
        for (options, targets, location) in option_sets(kernel)? {
            arguments::check_written(kernel.language, &options)
                .map_err(|problem| location.error(&problem))?;
            let key = Arc::new(KernelKey::for_source(&kernel.source_name, &options, processor));
            key.check().map_err(|error| location.error(&error.into()))?;
            if !included || targets.is_some_and(|variant| !variant.targets.matches(processor)) {
                continue;
            }
            if let Some(first) = seen.insert(Arc::clone(&key), location.clone()) {
                return Err(location.duplicate(&key, &first));
            }
            requests.push(KeyRequest {
                key,
                language: kernel.language,
                source: Arc::clone(&source),
                location,
            });
        }
    }
    Ok(requests)
}

type OptionSet<'a> = (String, Option<&'a Variant>, Location);

fn option_sets(kernel: &Kernel) -> Result<Vec<OptionSet<'_>>, Error> {
    let common = joined("", &kernel.options);
    if kernel.variants.is_empty() {
        return Ok(vec![(common, None, kernel.location.clone())]);
    }
    let mut sets = Vec::new();
    for variant in &kernel.variants {
        let matrix = combinations(variant, kernel.language);
        if matrix.is_empty() {
            return Err(variant.location.fault(
                format!("failed to expand `{}`: no combination is left", kernel.source_name),
                "loosen `exclude`, or take the variant out",
            ));
        }
        let none = [String::new()];
        let literal = if variant.options.is_empty() { &none[..] } else { &variant.options };
        for text in literal {
            let base = joined(&common, text);
            for defines in &matrix {
                let options = format!("{base}{defines}");
                sets.push((options, Some(variant), variant.location.clone()));
            }
        }
    }
    Ok(sets)
}

/// MIOpen's keys begin with a blank and have one before every option; a text that begins with one
/// is left as it is.
fn joined(before: &str, text: &str) -> String {
    let blank = if text.is_empty() || text.starts_with(' ') { "" } else { " " };
    format!("{before}{blank}{text}")
}

/// The combinations of the matrix as options, the last define varying fastest.
fn combinations(variant: &Variant, language: Language) -> Vec<String> {
    let mut rows: Vec<Vec<&Value>> = vec![Vec::new()];
    for (_, values) in &variant.defines {
        rows = rows
            .into_iter()
            .flat_map(|row| {
                values.iter().map(move |value| {
                    let mut row = row.clone();
                    row.push(value);
                    row
                })
            })
            .collect();
    }
    let excluded = |row: &[&Value]| {
        variant.exclude.iter().any(|pairs| {
            pairs.iter().all(|(name, value)| {
                let position = variant.defines.iter().position(|(define, _)| define == name);
                position.is_some_and(|position| row[position] == value)
            })
        })
    };
    let option = |(name, value): (&String, &Value)| match (language, value) {
        (_, Value::Flag(false)) => String::new(),
        (_, Value::Flag(true)) => format!(" -D{name}"),
        (Language::Assembly, Value::Integer(number)) => format!(" -Wa,-defsym,{name}={number}"),
        (_, Value::Integer(number)) => format!(" -D{name}={number}"),
        (_, Value::Text(text)) => format!(" -D{name}={text}"),
    };
    rows.into_iter()
        .filter(|row| !excluded(row))
        .map(|row| {
            let names = variant.defines.iter().map(|(name, _)| name);
            names.zip(row).map(option).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse;
    use expect_test::{Expect, expect};

    const HEAD: &str =
        "format = 1\n[library]\nname = \"t\"\nversion = \"1\"\nlicense = \"MIT\"\n\n";

    fn keys(body: &str, processor: &str) -> Result<String, Error> {
        let manifest = parse("k.toml", &format!("{HEAD}{body}"))?;
        let lines: Vec<String> =
            expand(&manifest, processor)?.iter().map(|request| request.key.to_string()).collect();
        Ok(lines.join("\n"))
    }

    #[track_caller]
    fn check(body: &str, expected: Expect) {
        expected.assert_eq(&keys(body, "gfx906").unwrap());
    }

    #[test]
    fn a_matrix_expands_in_the_order_written() {
        check(
            "[[kernel]]\nsource = \"d/a.cl\"\noptions = \"-DX\"\n[[kernel.variant]]\noptions = [\"-DM=1\", \"  -DM=2\"]\ndefines = { B = [1, 2], A = [\"half\"], F = [true, false] }\nexclude = [{ B = 2, F = true }]\n",
            expect![[r#"
                a.cl.o -DX -DM=1 -DB=1 -DA=half -DF -mcpu=gfx906
                a.cl.o -DX -DM=1 -DB=1 -DA=half -mcpu=gfx906
                a.cl.o -DX -DM=1 -DB=2 -DA=half -mcpu=gfx906
                a.cl.o -DX  -DM=2 -DB=1 -DA=half -DF -mcpu=gfx906
                a.cl.o -DX  -DM=2 -DB=1 -DA=half -mcpu=gfx906
                a.cl.o -DX  -DM=2 -DB=2 -DA=half -mcpu=gfx906"#]],
        );
    }

    #[test]
    fn a_kernel_without_variants_is_one_key_and_assembly_gets_symbols() {
        check(
            "[[kernel]]\nsource = \"a.cpp\"\n[[kernel]]\nsource = \"b.s\"\n[[kernel.variant]]\ndefines = { n = [4, 8] }\n",
            expect![[r#"
                a.cpp.o -mcpu=gfx906
                b.s.o -Wa,-defsym,n=4 -mcpu=gfx906
                b.s.o -Wa,-defsym,n=8 -mcpu=gfx906"#]],
        );
    }

    #[test]
    fn filters_leave_processors_out() {
        let body = "[[kernel]]\nsource = \"a.cl\"\ntargets = [\"gfx9*\", \"!gfx90c\"]\n[[kernel.variant]]\ntargets = [\"!gfx906\"]\n[[kernel.variant]]\noptions = [\"-DOLD\"]\n";
        assert_eq!(keys(body, "gfx906").unwrap(), "a.cl.o -DOLD -mcpu=gfx906");
        assert_eq!(keys(body, "gfx908").unwrap().lines().count(), 2);
        assert_eq!(keys(body, "gfx90c").unwrap(), "");
        assert_eq!(keys(body, "gfx1030").unwrap(), "");
    }
}
