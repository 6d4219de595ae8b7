//! Finds the commands whose sources include HIP's header before they do anything else, so that this
//! header may be precompiled for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use gfxpack_model::SourceId;
use gfxpack_process::watch::{FileAccess, Record};
use gfxpack_toolchain::ToolchainError;

use super::beginning::{
    MacroState, Question, including_runtime, including_twice, is_harmless_again,
};
use super::prepare::{HeaderGroup, HeaderMaker, MIN_HEADER_COMMANDS, Member, scratch};

impl HeaderMaker<'_> {
    /// The members whose sources include HIP's header before they do anything else, each with the
    /// macros that its source defines before; none if too few commands would use a new header.
    pub(super) fn including_first(
        &mut self,
        group: &HeaderGroup,
    ) -> Result<Vec<Member>, ToolchainError> {
        let recipe = self.recipe(group, including_runtime());
        let is_stored = recipe.is_some_and(|recipe| recipe.is_stored());
        if !is_stored && group.members.len() < MIN_HEADER_COMMANDS {
            return Ok(Vec::new());
        }
        let Some(states) = self.macro_states(group)? else { return Ok(Vec::new()) };
        // Commands of one source may search different directories.
        let mut alike: BTreeMap<(SourceId, &[PathBuf]), Vec<&Member>> = BTreeMap::new();
        for member in &group.members {
            alike.entry((member.source, &member.dirs)).or_default().push(member);
        }
        let mut first = Vec::new();
        for members in alike.into_values() {
            if let Some(before) = self.macros_before(group, &members, &states)? {
                let with_macros = |member: &Member| {
                    let macros = member.macros.union(&before).cloned().collect();
                    Member { macros, ..member.clone() }
                };
                first.extend(members.into_iter().map(with_macros));
            }
        }
        Ok(first)
    }

    /// The macros after the driver's header, and after HIP's header too; `None` if to include that
    /// twice is more than to include it once.
    fn macro_states(
        &mut self,
        group: &HeaderGroup,
    ) -> Result<Option<[MacroState; 2]>, ToolchainError> {
        let Some(recipe) = self.recipe(group, String::new()) else { return Ok(None) };
        let mut preprocessed = |shown: &str, text: &str| -> Result<_, ToolchainError> {
            let scratch = scratch(self.options.scratch, "macros-")?;
            let (dir, file) = (scratch.path(), scratch.path().join("i"));
            let args = recipe.preprocess(dir, ("", text), &[shown], &file)?;
            let Some(args) = args else { return Ok(None) };
            let is_done = self.run(group.toolchain, args, (dir, dir))?.0.ok();
            Ok(fs::read_to_string(&file).ok().filter(|_| is_done))
        };
        let twice = preprocessed("-dD", &including_twice())?;
        if !twice.is_some_and(|text| is_harmless_again(&text)) {
            return Ok(None);
        }
        let states = (preprocessed("-dM", "")?, preprocessed("-dM", &including_runtime())?);
        let (Some(before), Some(after)) = states else { return Ok(None) };
        Ok(Some([before, after].map(MacroState)))
    }

    /// The macros that the source of some members defines or undefines before it includes HIP's
    /// header; `None` if it does anything else before.
    fn macros_before(
        &mut self,
        group: &HeaderGroup,
        members: &[&Member],
        states: &[MacroState; 2],
    ) -> Result<Option<BTreeSet<String>>, ToolchainError> {
        let options = self.options;
        let member = members[0];
        let names = members.iter().flat_map(|member| &member.macros).map(String::as_str).collect();
        let Some(command) = member.commands.list.first() else { return Ok(None) };
        let scratch = scratch(options.scratch, "first-")?;
        let stage = options.file_system.real(scratch.path()).join("source");
        if !options.sources.lay_out(member.source, &stage)? {
            return Ok(None);
        }
        // What was not found must not be among the sources without having been laid out.
        let is_absent = |access: &FileAccess| {
            let below = access.path.strip_prefix(&stage);
            below.map_or(true, |below| options.sources.is_absent(member.source, below))
        };
        let misses_nothing =
            |record: Record| record.accesses.iter().filter(|it| it.is_absent()).all(is_absent);
        let mut beginnings = Vec::new();
        for (number, macros) in states.iter().enumerate() {
            let question = Question {
                command,
                main: &member.main,
                names: &names,
                scratch: &scratch.path().join(number.to_string()),
            };
            let Some(args) = question.arguments(macros)? else { return Ok(None) };
            let (output, record) = self.run(group.toolchain, args, (&stage, question.scratch))?;
            let beginning = question.answer(&output.stderr);
            beginnings.push(beginning.filter(|_| record.is_ok_and(misses_nothing)));
        }
        let is_same = beginnings[0] == beginnings[1];
        Ok(beginnings.swap_remove(0).filter(|_| is_same).map(|beginning| beginning.macros))
    }
}
