//! What Ctrl-C and SIGTERM do.

use gfxpack_compile::Cancel;

use crate::fail::{Failure, Result};
use crate::output::Output;

/// A flag that Ctrl-C and SIGTERM set. The second one ends the program at
/// once, and its compilers with it; what it leaves is swept up by the next
/// build.
pub(crate) fn cancel_on_signal(output: &Output) -> Result<Cancel> {
    let cancel = Cancel::default();
    let (flag, output) = (cancel.clone(), output.clone());
    ctrlc::set_handler(move || {
        if flag.is_cancelled() {
            gfxpack_compile::kill_children();
            std::process::exit(130);
        }
        output.say_above("stopping; once more ends at once");
        flag.cancel();
    })
    .map_err(Failure::Signals)?;
    Ok(cancel)
}
