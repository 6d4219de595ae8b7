//! Parses the XML files of `repodata`: `repomd.xml` and `primary.xml`.
//!
//! Source: createrepo_c, "Repository metadata".

use roxmltree::{Document, Error, ParsingOptions};

/// Maximum number of XML nodes; this many take a gigabyte.
const NODES_MAX: u32 = 1 << 24;

/// An entry: an index of `repomd.xml`, or a package of `primary.xml`.
pub(crate) struct Entry {
    /// `primary` for the index that lists packages, `rpm` for a package.
    pub(crate) kind: String,
    /// The path of the file in the repository; empty if missing.
    pub(crate) location: String,
    /// The file's digest; empty if missing.
    pub(crate) checksum: String,
}

/// The entries with the name `element`, in order.
pub(crate) fn entries(text: &str, element: &str) -> Result<Vec<Entry>, Error> {
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..Default::default() };
    let document = Document::parse_with_options(text, options)?;
    let nodes = document.root_element().children();
    let entries = nodes.filter(|node| node.tag_name().name() == element).map(|node| {
        let child = |name: &str| node.children().find(|child| child.tag_name().name() == name);
        let location = child("location").and_then(|node| node.attribute("href"));
        let checksum = child("checksum").and_then(|node| node.text());
        Entry {
            kind: node.attribute("type").unwrap_or_default().to_owned(),
            location: location.unwrap_or_default().to_owned(),
            checksum: checksum.unwrap_or_default().trim().to_owned(),
        }
    });
    Ok(entries.collect())
}
