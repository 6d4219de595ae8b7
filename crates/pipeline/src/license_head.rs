//! Licence and copyright as stated at the beginning of a source.

use std::borrow::Cow;

use gfxpack_plan::kernel_package::SourceLicense;
use gfxpack_plan::license;

/// How many bytes of a text are searched for its licence.
const HEAD: usize = 4096;

/// A file's name for people, by its path where a source is laid out.
pub(crate) fn plain_name(path: &str) -> &str {
    let below = path.strip_prefix("gfxpack-include-").and_then(|rest| rest.split_once('/'));
    below.map_or(path, |(_, below)| below)
}

/// The licence and the copyright holders that the beginning of a source states;
/// `None` if it states none. Recognises the text of the MIT licence, and SPDX
/// identifiers.
pub(crate) fn license_of(text: &[u8]) -> Option<SourceLicense> {
    let head = head(text);
    let by_text = || head.contains("MIT License").then(|| "MIT".to_owned());
    let license = identifier(&head).or_else(by_text)?;
    let copyright = holders_of(text);
    (!copyright.is_empty()).then_some(SourceLicense { license, copyright })
}

/// The copyright holders that the beginning of a source states, one a line.
pub(crate) fn holders_of(text: &[u8]) -> String {
    head(text).lines().filter_map(holder).collect::<Vec<_>>().join("\n")
}

fn head(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&text[..text.len().min(HEAD)])
}

/// Who a line says has the copyright, with the years.
fn holder(line: &str) -> Option<&str> {
    let after = |mark: &str| Some(line.split_once(mark)?.1);
    let marks = ["SPDX-FileCopyrightText: ", "Copyright (c) ", "Copyright (C) ", "Copyright © "];
    let of_year =
        || after("Copyright ").filter(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
    Some(without_comment_end(marks.into_iter().find_map(after).or_else(of_year)?))
}

/// The expression after `SPDX-License-Identifier:`.
fn identifier(head: &str) -> Option<String> {
    let (_, rest) = head.split_once("SPDX-License-Identifier:")?;
    let expression = without_comment_end(rest.lines().next()?);
    license::check(expression).is_ok().then(|| expression.to_owned())
}

fn without_comment_end(text: &str) -> &str {
    text.trim().trim_end_matches("*/").trim_end_matches('*').trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, expected: Option<(&str, &str)>) {
        let found = license_of(head.as_bytes());
        let found = found.as_ref().map(|of| (of.license.as_str(), of.copyright.as_str()));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_source_states_its_licence_and_its_holders() {
        let miopen = "/****\n *\n * MIT License\n *\n * Copyright (c) 2017 A, Inc.\n * Copyright (C) 2020 B\n";
        check(miopen, Some(("MIT", "2017 A, Inc.\n2020 B")));
        let spdx =
            "/* Copyright (c) 2021 C */\n/* SPDX-License-Identifier: BSD-3-Clause OR MIT */\n";
        check(spdx, Some(("BSD-3-Clause OR MIT", "2021 C")));
        let reuse = "// SPDX-FileCopyrightText: 2022 D\n// SPDX-License-Identifier: Zlib\n";
        check(reuse, Some(("Zlib", "2022 D")));
        let plain = "// Copyright 2023 E\n// Copyright holders\n// SPDX-License-Identifier: ISC\n";
        check(plain, Some(("ISC", "2023 E")));
    }

    #[test]
    fn what_a_head_does_not_state_is_not_known() {
        check("kernel void k() {}", None);
        check("// Copyright (c) 2021 C\n", None);
        check("// MIT License\n", None);
        check("// Copyright (c) 2021 C\n// SPDX-License-Identifier: no such licence\n", None);
    }
}
