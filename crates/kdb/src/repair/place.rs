//! Where in a file a cell stands.

use crate::repair::page::Kind;

/// Where a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellPlace {
    pub(crate) page: u32,
    pub(crate) at: u32,
    pub(crate) kind: Kind,
}

impl CellPlace {
    pub(crate) fn kind_code(self) -> u32 {
        match self.kind {
            Kind::TableLeaf => 0,
            Kind::IndexLeaf => 1,
            Kind::IndexInterior => 2,
        }
    }

    pub(crate) fn from_codes(page: u32, at: u32, kind: u32) -> Self {
        let kind = match kind {
            0 => Kind::TableLeaf,
            1 => Kind::IndexLeaf,
            _ => Kind::IndexInterior,
        };
        Self { page, at, kind }
    }
}
