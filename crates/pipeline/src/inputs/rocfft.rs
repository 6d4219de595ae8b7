//! Kernels that librocfft asks for, with the sources that it generates.

use std::path::Path;
use std::sync::Arc;

use gfxpack_compile::SourceDirs;
use gfxpack_model::Language;
use gfxpack_plan::Location;
use gfxpack_plan::consumer::Consumer;
use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::key_list::KeyRequest;

use super::collector::InputCollector;
use crate::error::Result;
use crate::rocfft::{RocfftAnswer, key, source_name};

impl InputCollector {
    /// Adds the kernels that librocfft asks for.
    pub(super) fn rocfft(&mut self, answer: &RocfftAnswer) -> Result<()> {
        let dir = answer.sources.path();
        let dirs = SourceDirs::list(&[dir.to_owned()])?;
        let library: Arc<str> = format!("rocFFT {}", answer.facts.version).into();
        for position in 0..self.requests.len() {
            let target = self.requests[position].target.clone();
            for (line, kernel) in (1..).zip(&answer.kernels[&target]) {
                let location = Location { file: Arc::clone(&library), line };
                let key = key(kernel, &target);
                if self.excludes(&target, &key) {
                    continue;
                }
                let name = source_name(&kernel.name);
                let path = dir.join(&name);
                let source =
                    self.inputs.sources.load(&path, &name, Language::Hip, &[], &[], Some(&dirs));
                let source = source.map_err(|fault| location.error(&fault))?;
                self.inputs.library.licenses.entry(name.clone()).or_default().insert(license());
                self.generated.insert(name.clone());
                let request = KeyRequest {
                    key: Arc::new(key),
                    language: Language::Hip,
                    source: Path::new(&name).into(),
                    location,
                };
                self.requests[position].keys.push((Arc::new(request), source));
            }
        }
        self.inputs.own_sources.push(Arc::clone(&answer.sources));
        self.inputs.library.consumer = Consumer::Rocfft;
        self.inputs.library.name = Some("rocFFT kernels".to_owned());
        self.inputs.library.homepage = Some("https://github.com/ROCm/rocm-libraries".to_owned());
        self.inputs.library.version = Some(answer.facts.version.clone());
        self.inputs.library.prefix = answer.library.layout().map(|layout| layout.prefix());
        self.inputs.library.rocfft = Some(answer.facts.clone());
        self.has_input = true;
        Ok(())
    }
}

/// The licence of the generated sources.
///
/// Source: ROCm/rocFFT, LICENSE.md, a933f71bf2d90cb5993f009ce1cc05df6dfa463e.
fn license() -> SourceLicense {
    SourceLicense {
        license: "MIT".to_owned(),
        copyright: "2016-2024 Advanced Micro Devices, Inc.".to_owned(),
    }
}
