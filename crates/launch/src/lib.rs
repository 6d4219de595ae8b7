//! How a compiler is started at the least cost for the same bytes: by its
//! driver as it is, or without it, forked from a compiler that is already
//! loaded, with headers parsed beforehand.
//!
//! Whoever wants a command run needs [`Launcher`] and what it takes and gives:
//! [`Command`], [`Place`] and [`Run`]. [`DriverLauncher`] is the plain way;
//! [`FastLauncher`] takes the shortcuts. Every shortcut can be turned off, and
//! none is taken where it might give other bytes.
//!
//! This crate knows no plan, no job, no object store and no kernel's name.
//!
//! ```
//! use gfxpack_launch::{Shortcut, Shortcuts};
//!
//! // To tell whether a shortcut is to blame for something:
//! let shortcuts = Shortcuts::default().without(Shortcut::ForkServer);
//! assert!(shortcuts.direct && !shortcuts.fork_server);
//! ```

mod arguments;
mod driver_launcher;
mod drivers;
mod fast_launcher;
mod fork_server;
mod headers;
mod launcher;
mod session;
mod shortcuts;
mod starter;
mod template;
mod watching;
mod wrappers;

pub use arguments::{depfile_paths, searched};
pub use driver_launcher::DriverLauncher;
pub use drivers::{Direct, DriverCommands, Drivers};
pub use fast_launcher::FastLauncher;
pub use headers::HeaderOptions;
pub use launcher::{Command, Launcher, Place, ReadBefore, Run, SourceFiles};
pub use session::Session;
pub use shortcuts::{Shortcut, Shortcuts};
pub use template::{CommandTemplate, Define, Defines, TemplateValues, Word};
pub use watching::{ToolchainPlaces, searched_twice, with_searched};
