//! `miopen`: shows the libMIOpen that would be asked, and its sources.

use std::path::{Path, PathBuf};

use gfxpack_miopen::{Library, LibrarySource, MIOPEN, Sources};
use gfxpack_pipeline::source_tree::{PREFIX_FILE, VERSION_FILE};
use gfxpack_pipeline::{destination, stock_library};

use crate::args::MiopenCommand;
use crate::context::Context;
use crate::fail::Result;
use crate::output::{Output, counted, display, message};
use crate::progress::Reporter;

const COMMENT: &str = "The libMIOpen that `cargo xtask dist` asks: packages of Debian's archive by \
                       digest.\n`cargo xtask update-miopen` moves it to the newest.";

/// Finds or downloads the library, and shows it.
pub(crate) fn run(args: &MiopenCommand, context: &Context) -> Result {
    let Context { output, .. } = context;
    let cache = args.cache.directory()?;
    let options = &args.library;
    let reporter = Reporter::new(context);
    let source = match &args.lock {
        None => options.miopen.clone(),
        Some(file) => {
            let lock = stock_library::choose(options, &cache, &reporter)?;
            destination::replace(file, lock.text(COMMENT)?)?;
            // Use exactly what was written.
            Some(LibrarySource::Lock(file.clone()))
        }
    };
    let library = stock_library::locate(&MIOPEN, source.as_ref(), options, &cache, &reporter)?;
    let sources = Sources::in_library(&library)?;
    print(&library, &sources, output)?;
    for unnamed in &sources.unnamed {
        output.warn(&format!("the text `{unnamed}` is left out: its file's name is not known"));
    }
    if let Some(dir) = &args.sources {
        sources.write(dir)?;
        if let Some(version) = &library.version {
            destination::replace(&dir.join(VERSION_FILE), format!("{version}\n"))?;
        }
        if let Some(layout) = library.layout() {
            destination::replace(&dir.join(PREFIX_FILE), format!("{}\n", layout.prefix()))?;
        }
    }
    Ok(())
}

fn print(library: &Library, sources: &Sources, output: &Output) -> Result {
    let needs = library.needs()?;
    let paths = |paths: &[PathBuf]| paths.iter().map(display).collect::<Vec<_>>();
    message!(output, "miopen", {
        "version": library.version,
        "origin": library.origin,
        "file": display(&library.file),
        "sha256": library.sha256,
        "loader": library.loader.as_ref().map(display),
        "driver": library.driver.as_ref().map(display),
        "search_path": paths(&library.search_path),
        "databases": paths(&library.databases),
        "stood_in": needs.stood_in,
        "missing": needs.missing,
        "kdb_dir": library.layout().map(|layout| layout.kdb_dir()),
        "sources": sources.kernels.len(),
        "includes": sources.includes.len(),
    });
    let line = |label: &str, value: &str| output.text(&format!("  {label:<12} {value}"));
    let path = |label: &str, path: &Path| line(label, &path.display().to_string());
    let version = library.version.as_deref().unwrap_or("of unknown version");
    output.text(&format!("libMIOpen {version}: {}", library.origin));
    path("file", &library.file);
    line("sha256", &library.sha256.to_string());
    if let Some(loader) = &library.loader {
        path("loader", loader);
    }
    if let Some(driver) = &library.driver {
        path("driver", driver);
    }
    if let Some(layout) = library.layout() {
        line("looks in", &layout.kdb_dir());
    }
    library.databases.iter().for_each(|dir| path("databases", dir));
    line("stood in", &Vec::from_iter(needs.stood_in).join(" "));
    let (kernels, includes) = (sources.kernels.len(), sources.includes.len());
    line("sources", &format!("{}, {}", counted(kernels, "kernel"), counted(includes, "include")));
    if !needs.missing.is_empty() {
        line("missing", &Vec::from_iter(needs.missing).join(" "));
    }
    Ok(())
}
