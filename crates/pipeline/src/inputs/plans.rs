//! Kernels that librocfft asks for, with the texts that it generates.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use gfxpack_model::{Language, SourceId};
use gfxpack_plan::Location;
use gfxpack_plan::consumer::{Consumer, StoreFormat};
use gfxpack_plan::expand::KeyRequest;
use gfxpack_plan::kernel_package::SourceLicense;

use super::reader::Reader;
use crate::error::{self, Error, Result};
use crate::rocfft::{AskedPlans, key, source_name, source_text};

impl Reader {
    /// Adds the kernels that librocfft asks for. One name is one text on all
    /// devices.
    pub(super) fn plans(&mut self, asked: &AskedPlans) -> Result<()> {
        let dir = tempfile::Builder::new()
            .prefix("gfxpack-sources-")
            .tempdir()
            .map_err(error::io("create", &std::env::temp_dir()))?;
        let mut loaded: HashMap<&str, (SourceId, &str)> = HashMap::new();
        let library: Arc<str> = format!("rocFFT {}", asked.facts.version).into();
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            self.requests[position].format = StoreFormat::RocfftCache;
            for (line, kernel) in (1..).zip(&asked.kernels[&target]) {
                let location = Location { file: Arc::clone(&library), line };
                let name = source_name(&kernel.name);
                let source = match loaded.get(kernel.name.as_str()) {
                    Some((source, text)) if *text == kernel.source => *source,
                    Some(_) => {
                        return Err(Error::Unsound(format!(
                            "rocFFT's kernel `{}` differs between targets",
                            kernel.name
                        )));
                    }
                    None => {
                        let path = dir.path().join(&name);
                        fs::write(&path, source_text(kernel)).map_err(error::io("write", &path))?;
                        let source = self.sources.load(&path, &name, Language::Hip, &[], None);
                        let source = source.map_err(|fault| location.error(fault))?;
                        loaded.insert(&kernel.name, (source, &kernel.source));
                        self.library.licenses.entry(name.clone()).or_default().insert(licence());
                        self.generated.insert(name.clone());
                        source
                    }
                };
                let key = key(kernel, &target);
                if self.excluded.has(&target, &key) {
                    continue;
                }
                let request = KeyRequest {
                    key: Arc::new(key),
                    language: Language::Hip,
                    source: Path::new(&name).into(),
                    location,
                };
                self.requests[position].keys.push((Arc::new(request), source));
            }
        }
        self.library.reader = Consumer::Rocfft;
        self.library.name = Some("rocFFT kernels".to_owned());
        self.library.homepage = Some("https://github.com/ROCm/rocm-libraries".to_owned());
        self.library.version = Some(asked.facts.version.clone());
        self.library.rocfft = Some(asked.facts.clone());
        Ok(())
    }
}

/// What the generator writes is of its own licence.
///
/// Source: ROCm/rocm-libraries, projects/rocfft/LICENSE.md.
fn licence() -> SourceLicense {
    SourceLicense {
        license: "MIT".to_owned(),
        copyright: "Advanced Micro Devices, Inc.".to_owned(),
    }
}
