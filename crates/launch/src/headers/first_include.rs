//! Finds the commands whose sources include HIP's header before they do anything else, so that this
//! header may be precompiled for them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::SourceId;
use gfxpack_toolchain::ToolchainError;

use super::beginning::{
    MacroState, Question, including_runtime, including_twice, is_harmless_again,
};
use super::prepare::{HeaderGroup, HeaderMaker, MIN_HEADER_COMMANDS, Member, scratch};
use super::recipe::CacheEntry;
use crate::template::CommandTemplate;

/// The macros that a source defines or undefines before it includes HIP's header, and the paths
/// among the sources at which nothing was found.
type Before = (BTreeSet<String>, BTreeSet<PathBuf>);

impl HeaderMaker<'_> {
    /// The members whose sources include HIP's header before they do anything else, each with the
    /// macros that its source defines before; none if too few commands would use a new header.
    pub(super) fn including_first(
        &mut self,
        group: &HeaderGroup,
    ) -> Result<Vec<Member>, ToolchainError> {
        let Some(recipe) = self.recipe(group, including_runtime()) else { return Ok(Vec::new()) };
        match recipe.found(self.options.file_system) {
            Some(CacheEntry::Unfit) => return Ok(Vec::new()),
            None if group.members.len() < MIN_HEADER_COMMANDS => return Ok(Vec::new()),
            _ => {}
        }
        let Some(states) = self.macro_states(group)? else { return Ok(Vec::new()) };
        // Commands of one source may search different directories.
        let mut alike: Vec<Vec<&Member>> = Vec::new();
        let mut places: HashMap<(SourceId, &str, Option<&CommandTemplate>), usize> = HashMap::new();
        for member in &group.members {
            let asked = (member.source, member.main.as_str(), member.commands.list.first());
            let place = *places.entry(asked).or_insert_with(|| {
                alike.push(Vec::new());
                alike.len() - 1
            });
            alike[place].push(member);
        }
        let mut first = Vec::new();
        for members in alike {
            if let Some((macros, absent)) = self.before_runtime(group, &members, &states)? {
                first.extend(members.into_iter().map(|member| Member {
                    macros: member.macros.union(&macros).cloned().collect(),
                    absent: absent.clone(),
                    ..member.clone()
                }));
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

    /// What the source of some members does before it includes HIP's header; `None` if that is more
    /// than to define macros.
    fn before_runtime(
        &mut self,
        group: &HeaderGroup,
        members: &[&Member],
        states: &[MacroState; 2],
    ) -> Result<Option<Before>, ToolchainError> {
        let options = self.options;
        let member = members[0];
        let names = members.iter().flat_map(|member| &member.macros).map(String::as_str).collect();
        let Some(command) = member.commands.list.first() else { return Ok(None) };
        let scratch = scratch(options.scratch, "first-")?;
        let stage = options.file_system.real(scratch.path()).join("source");
        if !options.sources.lay_out(member.source, &stage)? {
            return Ok(None);
        }
        let (mut beginnings, mut absent) = (Vec::new(), BTreeSet::new());
        for (number, macros) in states.iter().enumerate() {
            let question = Question {
                command,
                main: &member.main,
                names: &names,
                scratch: &scratch.path().join(number.to_string()),
            };
            let Some(args) = question.arguments(macros)? else { return Ok(None) };
            let (output, record) = self.run(group.toolchain, args, (&stage, question.scratch))?;
            let (Some(beginning), Ok(record)) = (question.answer(&output.stderr), record) else {
                let reason = output.stderr;
                tracing::debug!(source = member.main, reason, "HIP's header does not come first");
                return Ok(None);
            };
            let missed = record.accesses.iter().filter(|access| access.is_absent());
            let below = missed.filter_map(|access| access.path.strip_prefix(&stage).ok());
            absent.extend(below.map(Path::to_owned));
            beginnings.push(beginning);
        }
        let is_same = beginnings[0] == beginnings[1];
        Ok(is_same.then(|| (beginnings.swap_remove(0).macros, absent)))
    }
}
