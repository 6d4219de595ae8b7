//! What every command gets.

use gfxpack_compile::Cancel;
use gfxpack_pipeline::error::{Error, ErrorKind};

use crate::environment::Environment;
use crate::fail::Result;
use crate::output::Output;

/// The environment, the output, and whether to stop.
pub(crate) struct Context {
    pub(crate) environment: Environment,
    pub(crate) output: Output,
    pub(crate) cancel: Cancel,
}

impl Context {
    /// The context with a flag that Ctrl-C and SIGTERM set; may be called once. A
    /// second signal ends the program and its compilers immediately; the next
    /// build removes leftover files.
    pub(crate) fn cancellable(&self) -> Result<&Self> {
        let (cancel, output) = (self.cancel.clone(), self.output.clone());
        let handler = move || {
            if cancel.is_cancelled() {
                gfxpack_compile::kill_children();
                std::process::exit(130);
            }
            output.above(|| output.info("stopping; once more ends at once"));
            cancel.cancel();
        };
        ctrlc::set_handler(handler).map_err(|error| {
            let message = format!("failed to handle signals: {error}");
            Error::without_hint(ErrorKind::Internal, message)
        })?;
        Ok(self)
    }
}
