//! Which package an installed file belongs to.

use std::path::Path;

use gfxpack_process::SystemTool;

const DPKG: SystemTool = SystemTool { program: "dpkg", provided_by: "dpkg" };
const RPM: SystemTool = SystemTool { program: "rpm", provided_by: "rpm" };

/// The package that installed a file, or files of this pattern; `None` if none did.
#[must_use]
pub fn owner(path: &Path) -> Option<String> {
    let directory = path.parent()?.canonicalize().ok()?;
    let path = directory.join(path.file_name()?);
    let text = path.to_str()?;
    if let Ok(found) = DPKG.output(&["-S", text], &directory, &[]) {
        let line = String::from_utf8_lossy(&found).lines().next()?.to_owned();
        return Some(line.split([':', ',']).next()?.to_owned());
    }
    let found = RPM.output(&["-qf", "--queryformat", "%{NAME}\n", text], &directory, &[]).ok()?;
    Some(String::from_utf8_lossy(&found).lines().next()?.to_owned())
}
