//! Finds the commands whose sources include HIP's headers before they do anything else, so that these
//! headers may be precompiled for them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::{Error, SourceId, ToolchainId};
use gfxpack_process::watch::{Visible, tidy_path};

use super::beginning::{
    FirstInclude, HALF, MacroState, RUNTIME, answer, changed_names, harmless_again, including,
    including_all, question,
};
use super::prepare::{HeaderGroup, HeaderMaker, MIN_HEADER_COMMANDS, Member, scratch};
use super::recipe::{CacheEntry, HeaderRecipe};
use crate::template::CommandTemplate;

/// The lists of headers that are precompiled together, longer ones first.
const LISTS: [&[&str]; 3] = [&[RUNTIME, HALF], &[RUNTIME], &[HALF, RUNTIME]];

/// The macros with which the sources of a group are asked.
struct AskedMacros {
    /// The recipe for the driver's header.
    recipe: HeaderRecipe,
    state: MacroState,
    /// By the header that comes first: how many of HIP's headers, in that order, do nothing when
    /// they are included again. The names that they define or undefine are poisoned.
    harmless: HashMap<&'static str, usize>,
}

/// Members with one source, and which of HIP's headers it includes first.
struct SourceBeginning<'m> {
    members: Vec<&'m Member>,
    includes: Vec<FirstInclude>,
}

impl SourceBeginning<'_> {
    fn headers(&self) -> Vec<&'static str> {
        self.includes.iter().map(|include| include.header).collect()
    }

    /// The members with the macros that their source defines before the last of its first `count`
    /// headers.
    fn members_with(&self, count: usize) -> impl Iterator<Item = Member> {
        let macros = self.includes[..count].iter().flat_map(|include| &include.macros);
        let macros: BTreeSet<String> = macros.cloned().collect();
        self.members.iter().map(move |&member| Member {
            macros: member.macros.union(&macros).cloned().collect(),
            ..member.clone()
        })
    }
}

impl HeaderMaker<'_> {
    /// The members whose sources include some of HIP's headers before they do anything else, by the
    /// text that includes these headers; none if too few commands would use new ones.
    pub(super) fn including_first(
        &mut self,
        group: &HeaderGroup,
    ) -> Result<Vec<(String, Vec<Member>)>, Error> {
        let enough = group.members.len() >= MIN_HEADER_COMMANDS;
        let lists = LISTS.map(|list| (list, self.stored(group, list)));
        let may_pay = lists.iter().any(|(_, stored)| match stored {
            Some(entry) => matches!(entry, CacheEntry::Header(_)),
            None => enough,
        });
        if !may_pay {
            return Ok(Vec::new());
        }
        let Some(mut macros) = self.macros_of(group)? else { return Ok(Vec::new()) };
        let mut beginnings = Vec::new();
        for members in by_source(&group.members) {
            beginnings.push(self.ask(group, members, &mut macros)?);
        }
        let mut by_text = Vec::new();
        for first in [&[RUNTIME][..], &[HALF, RUNTIME]] {
            let alike: Vec<&SourceBeginning<'_>> =
                beginnings.iter().filter(|it| it.headers().starts_with(first)).collect();
            // Commands that use the header include the same again.
            let harmless = macros.harmless.get(first[0]).copied().unwrap_or_default();
            let shared = lists.iter().filter(|(list, stored)| {
                list.starts_with(first)
                    && list.len() <= harmless
                    && !matches!(stored, Some(CacheEntry::Unfit))
                    && alike.iter().all(|it| it.headers().starts_with(list))
            });
            // One that is precompiled already, or else the longest.
            if let Some((list, _)) = shared.min_by_key(|(_, stored)| stored.is_none()) {
                let members = alike.iter().flat_map(|it| it.members_with(list.len())).collect();
                by_text.push((including(list), members));
            }
        }
        Ok(by_text)
    }

    /// The stored result for some of HIP's headers.
    fn stored(&self, group: &HeaderGroup, headers: &[&str]) -> Option<CacheEntry> {
        self.recipe(group, including(headers))?.found(self.session.drivers.file_system)
    }

    /// Asks which of HIP's headers the source of some members includes first.
    fn ask<'m>(
        &mut self,
        group: &HeaderGroup,
        members: Vec<&'m Member>,
        macros: &mut AskedMacros,
    ) -> Result<SourceBeginning<'m>, Error> {
        let mut asked = SourceBeginning { members, includes: Vec::new() };
        let scratch = scratch(self.options.scratch, "first-")?;
        let stage = self.session.drivers.file_system.real(scratch.path()).join("source");
        let Member { source, dirs, .. } = asked.members[0];
        self.session.drivers.sources.lay_out(*source, &stage)?;
        // Without the directory, the preprocessor would look for nothing in it.
        let is_dir = |dir: &PathBuf| self.session.drivers.sources.is_dir(*source, dir);
        let below = dirs.iter().filter(|dir| is_dir(dir)).map(|dir| tidy_path(dir));
        for dir in below.filter(|dir| !dir.starts_with("..")).map(|dir| stage.join(dir)) {
            if fs::create_dir_all(&dir).is_err() {
                return Ok(asked);
            }
        }
        asked.includes = self.includes(group, &asked, &macros.state, &stage)?;
        let first = asked.includes.first().map(|include| include.header);
        if let Some(first) = first.filter(|first| !macros.harmless.contains_key(first)) {
            asked.includes.clear();
            if let Some(printed) = self.print_all(group.toolchain, &macros.recipe, first)? {
                macros.state.poison(changed_names(&printed));
                macros.harmless.insert(first, harmless_again(&printed));
                asked.includes = self.includes(group, &asked, &macros.state, &stage)?;
            }
        }
        Ok(asked)
    }

    /// Which of HIP's headers the source includes first.
    fn includes(
        &mut self,
        group: &HeaderGroup,
        asked: &SourceBeginning<'_>,
        macros: &MacroState,
        stage: &Path,
    ) -> Result<Vec<FirstInclude>, Error> {
        let mut macros = macros.clone();
        macros.poison(asked.members.iter().flat_map(|member| &member.macros).cloned());
        let Member { commands, main, .. } = asked.members[0];
        let Some(command) = commands.list.first() else { return Ok(Vec::new()) };
        let scratch = scratch(self.options.scratch, "question-")?;
        let args = question(command, main, &macros, scratch.path())?;
        let Some(args) = args else { return Ok(Vec::new()) };
        let visible = Visible { stage: stage.to_owned(), ..Visible::default() };
        let dirs = (stage, scratch.path());
        let (output, record) = self.run(group.toolchain, args, dirs, &visible)?;
        if record.is_err() {
            return Ok(Vec::new());
        }
        let includes = answer(&output.stderr, scratch.path());
        if includes.is_empty() {
            tracing::debug!(source = main, reason = output.stderr, "no header of HIP comes first");
        }
        Ok(includes)
    }

    /// The predefined macros, with those poisoned that the driver's header and HIP's define or
    /// undefine; `None` if these could not be found out.
    fn macros_of(&mut self, group: &HeaderGroup) -> Result<Option<AskedMacros>, Error> {
        let Some(recipe) = self.recipe(group, String::new()) else { return Ok(None) };
        let Some(printed) = self.print_all(group.toolchain, &recipe, RUNTIME)? else {
            return Ok(None);
        };
        let harmless = HashMap::from([(RUNTIME, harmless_again(&printed))]);
        Ok(MacroState::new(&printed).map(|state| AskedMacros { recipe, state, harmless }))
    }

    /// What the preprocessor prints for HIP's headers, one of them first; `None` if it fails.
    fn print_all(
        &mut self,
        toolchain: ToolchainId,
        recipe: &HeaderRecipe,
        first: &'static str,
    ) -> Result<Option<String>, Error> {
        let scratch = scratch(self.options.scratch, "text-")?;
        let (dir, file) = (scratch.path(), scratch.path().join("i"));
        let text = including_all(first);
        let args = recipe.preprocess(dir, ("", &text), &["-dD"], &file)?;
        let Some(args) = args else { return Ok(None) };
        let mut visible = self.options.search.inputs(toolchain, &recipe.command, &text).visible;
        visible.stage = self.session.drivers.file_system.real(dir);
        let is_done = self.run(toolchain, args, (dir, dir), &visible)?.0.ok();
        Ok(fs::read_to_string(&file).ok().filter(|_| is_done))
    }
}

/// Members by their source, the directories that they search, and their command but for macros.
fn by_source(members: &[Member]) -> Vec<Vec<&Member>> {
    let mut alike: Vec<Vec<&Member>> = Vec::new();
    let mut places: HashMap<(SourceId, &str, Option<&CommandTemplate>), usize> = HashMap::new();
    for member in members {
        let asked = (member.source, member.main.as_str(), member.commands.list.first());
        let place = *places.entry(asked).or_insert_with(|| {
            alike.push(Vec::new());
            alike.len() - 1
        });
        alike[place].push(member);
    }
    alike
}
