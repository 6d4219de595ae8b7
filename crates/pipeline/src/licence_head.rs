//! Licence and copyright as the beginning of a source states them.

use gfxpack_plan::kernel_package::SourceLicense;

/// Whose the texts in a library are, by their own heads; none where a head
/// says nothing of it.
pub(crate) fn licence_of(text: &[u8]) -> Option<SourceLicense> {
    let head = String::from_utf8_lossy(&text[..text.len().min(HEAD)]).into_owned();
    if !head.contains("MIT License") && !head.contains("SPDX-License-Identifier: MIT") {
        return None;
    }
    let holders: Vec<String> = head
        .lines()
        .filter_map(|line| {
            line.split_once("Copyright (c) ").map(|(_, rest)| rest.trim().to_owned())
        })
        .collect();
    let copyright = if holders.is_empty() { return None } else { holders.join("\n") };
    Some(SourceLicense { license: "MIT".to_owned(), copyright })
}

/// Bytes of a text that are searched for its licence.
const HEAD: usize = 4096;
