//! Finds the commands whose sources include HIP's headers before they do anything else, so that these
//! headers may be precompiled for them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use gfxpack_model::SourceId;
use gfxpack_toolchain::ToolchainError;

use super::beginning::{FirstInclude, HALF, MacroState, Question, RUNTIME, including};
use super::prepare::{HeaderGroup, HeaderMaker, MIN_HEADER_COMMANDS, Member, scratch};
use super::recipe::CacheEntry;
use crate::template::CommandTemplate;

/// The lists of headers that are precompiled together, longer ones first.
const LISTS: [&[&str]; 3] = [&[RUNTIME, HALF], &[RUNTIME], &[HALF, RUNTIME]];

/// The macros that are defined after some of HIP's headers, by these headers; `None` if this could
/// not be found out.
type MacroStates = HashMap<Vec<&'static str>, Option<MacroState>>;

/// Members with one source, and which of HIP's headers it includes first.
struct SourceBeginning<'m> {
    members: Vec<&'m Member>,
    includes: Vec<FirstInclude>,
    /// The paths among the sources at which nothing was found.
    absent: BTreeSet<PathBuf>,
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
            absent: self.absent.clone(),
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
    ) -> Result<Vec<(String, Vec<Member>)>, ToolchainError> {
        let enough = group.members.len() >= MIN_HEADER_COMMANDS;
        let lists = LISTS.map(|list| (list, self.stored(group, list)));
        let may_pay = lists.iter().any(|(_, stored)| match stored {
            Some(entry) => matches!(entry, CacheEntry::Header(_)),
            None => enough,
        });
        if !may_pay {
            return Ok(Vec::new());
        }
        let mut states = MacroStates::new();
        let mut beginnings = Vec::new();
        for members in by_source(&group.members) {
            beginnings.push(self.ask(group, members, &mut states)?);
        }
        let mut by_text = Vec::new();
        for first in [&[RUNTIME][..], &[HALF, RUNTIME]] {
            let alike: Vec<&SourceBeginning<'_>> =
                beginnings.iter().filter(|it| it.headers().starts_with(first)).collect();
            let shared = lists.iter().filter(|(list, stored)| {
                list.starts_with(first)
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
        self.recipe(group, including(headers))?.found(self.options.file_system)
    }

    /// Asks which of HIP's headers the source of some members includes first: the same ones with the
    /// macros before all of them and after each.
    fn ask<'m>(
        &mut self,
        group: &HeaderGroup,
        members: Vec<&'m Member>,
        states: &mut MacroStates,
    ) -> Result<SourceBeginning<'m>, ToolchainError> {
        let mut asked = SourceBeginning { members, includes: Vec::new(), absent: BTreeSet::new() };
        let scratch = scratch(self.options.scratch, "first-")?;
        let stage = self.options.file_system.real(scratch.path()).join("source");
        if !self.options.sources.lay_out(asked.members[0].source, &stage)? {
            return Ok(asked);
        }
        let macros = self.macros_after(group, Vec::new(), states)?;
        let includes = macros.map(|macros| self.includes(group, &mut asked, macros, &stage));
        asked.includes = includes.transpose()?.unwrap_or_default();
        for count in 1.. {
            let Some(headers) = asked.headers().get(..count).map(<[_]>::to_vec) else { break };
            let macros = self.macros_after(group, headers, states)?;
            let includes = macros.map(|macros| self.includes(group, &mut asked, macros, &stage));
            let includes = includes.transpose()?.unwrap_or_default();
            let same = asked.includes.iter().zip(&includes).take_while(|(one, other)| one == other);
            asked.includes.truncate(same.count());
        }
        Ok(asked)
    }

    /// Which of HIP's headers the source includes first with some macros.
    fn includes(
        &mut self,
        group: &HeaderGroup,
        asked: &mut SourceBeginning<'_>,
        macros: &MacroState,
        stage: &Path,
    ) -> Result<Vec<FirstInclude>, ToolchainError> {
        let names = asked.members.iter().flat_map(|member| &member.macros);
        let names = names.map(String::as_str).collect();
        let Member { commands, main, .. } = asked.members[0];
        let Some(command) = commands.list.first() else { return Ok(Vec::new()) };
        let scratch = scratch(self.options.scratch, "question-")?;
        let question = Question { command, main, names: &names, scratch: scratch.path() };
        let Some(args) = question.arguments(macros)? else { return Ok(Vec::new()) };
        let (output, record) = self.run(group.toolchain, args, (stage, scratch.path()))?;
        let Ok(record) = record else { return Ok(Vec::new()) };
        let missed = record.accesses.iter().filter(|access| access.is_absent());
        let below = missed.filter_map(|access| access.path.strip_prefix(stage).ok());
        asked.absent.extend(below.map(Path::to_owned));
        let includes = question.answer(&output.stderr);
        if includes.is_empty() {
            tracing::debug!(source = main, reason = output.stderr, "no header of HIP comes first");
        }
        Ok(includes)
    }

    /// The macros after the driver's header and some of HIP's.
    fn macros_after<'s>(
        &mut self,
        group: &HeaderGroup,
        headers: Vec<&'static str>,
        states: &'s mut MacroStates,
    ) -> Result<Option<&'s MacroState>, ToolchainError> {
        let place = match states.entry(headers) {
            Entry::Occupied(known) => return Ok(known.into_mut().as_ref()),
            Entry::Vacant(place) => place,
        };
        let scratch = scratch(self.options.scratch, "macros-")?;
        let (dir, file) = (scratch.path(), scratch.path().join("i"));
        let recipe = self.recipe(group, including(place.key()));
        let args =
            recipe.map(|recipe| recipe.preprocess(dir, ("", recipe.text()), &["-dM"], &file));
        let mut state = None;
        if let Some(args) = args.transpose()?.flatten() {
            let is_done = self.run(group.toolchain, args, (dir, dir))?.0.ok();
            state = fs::read_to_string(&file).ok().filter(|_| is_done).map(MacroState);
        }
        Ok(place.insert(state).as_ref())
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
