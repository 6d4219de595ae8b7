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

/// The macros that are defined after some of HIP's headers, by these headers; `None` if this could
/// not be found out.
type MacroStates = HashMap<Vec<&'static str>, Option<MacroState>>;

/// Members with one source, and which of HIP's headers it includes first.
struct Asked<'m> {
    members: Vec<&'m Member>,
    includes: Vec<FirstInclude>,
    /// The paths among the sources at which nothing was found.
    absent: BTreeSet<PathBuf>,
}

impl Asked<'_> {
    fn headers(&self) -> Vec<&'static str> {
        self.includes.iter().map(|include| include.header).collect()
    }

    /// The members with the macros that their source defines before its first headers.
    fn members(&self, headers: usize) -> impl Iterator<Item = Member> {
        let macros = self.includes[..headers].iter().flat_map(|include| &include.macros);
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
        let may_pay = match self.stored(group, &[RUNTIME]) {
            Some(entry) => matches!(entry, CacheEntry::Header(_)),
            None if group.members.len() >= MIN_HEADER_COMMANDS => true,
            None => [[RUNTIME, HALF], [HALF, RUNTIME]]
                .iter()
                .any(|headers| self.stored(group, headers).is_some()),
        };
        if !may_pay {
            return Ok(Vec::new());
        }
        let mut states = MacroStates::new();
        let mut asked = Vec::new();
        for members in by_source(&group.members) {
            asked.push(self.ask(group, members, &mut states)?);
        }
        let beginnings: [&[&str]; 2] = [&[RUNTIME], &[HALF, RUNTIME]];
        let by_headers = beginnings.map(|headers| {
            let alike: Vec<&Asked<'_>> =
                asked.iter().filter(|asked| asked.headers().starts_with(headers)).collect();
            // The headers that all of them include: the least of the lists is a part of the others.
            // Fewer if these are precompiled already.
            let all = alike.iter().map(|asked| asked.headers()).min().unwrap_or_default();
            let counts = (headers.len()..=all.len()).rev();
            let mut counts = counts.filter(|&count| self.stored(group, &all[..count]).is_some());
            let count = counts.next().unwrap_or(all.len());
            let members = alike.iter().flat_map(|asked| asked.members(count)).collect();
            (including(&all[..count]), members)
        });
        Ok(by_headers.into())
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
    ) -> Result<Asked<'m>, ToolchainError> {
        let mut asked = Asked { members, includes: Vec::new(), absent: BTreeSet::new() };
        let scratch = scratch(self.options.scratch, "first-")?;
        let stage = self.options.file_system.real(scratch.path()).join("source");
        if !self.options.sources.lay_out(asked.members[0].source, &stage)? {
            return Ok(asked);
        }
        let before = self.macros_after(group, Vec::new(), states)?;
        let before = before.map(|macros| self.includes(group, &mut asked, macros, &stage));
        asked.includes = before.transpose()?.unwrap_or_default();
        for count in 1.. {
            let Some(headers) = asked.headers().get(..count).map(<[_]>::to_vec) else { break };
            let macros = self.macros_after(group, headers, states)?;
            let after = macros.map(|macros| self.includes(group, &mut asked, macros, &stage));
            let after = after.transpose()?.unwrap_or_default();
            let same = asked.includes.iter().zip(&after).take_while(|(one, other)| one == other);
            asked.includes.truncate(same.count());
        }
        Ok(asked)
    }

    /// Which of HIP's headers the source includes first with some macros.
    fn includes(
        &mut self,
        group: &HeaderGroup,
        asked: &mut Asked<'_>,
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
