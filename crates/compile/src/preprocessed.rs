//! Objects of earlier builds whose source differs in text only: what the
//! preprocessor makes of both is the same, so the object is.
//!
//! A job is held against the job that its key was built with last. Nothing is
//! preprocessed where there is none, so that a build of what is new pays
//! nothing; and where one key of a changed source turns out different, the
//! others of that source are compiled without asking.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use gfxpack_plan::inline_assembly::tells_more;
use gfxpack_plan::plan::{Job, Plan};
use gfxpack_plan::{Digest, Language};

use crate::clock;
use crate::engine::{Engine, Starter};
use crate::error::CompileError;
use crate::file_digest::FileDigests;
use crate::history::{self, History, Record};
use crate::process::End;
use crate::store::{About, ObjectInfo, ObjectStore, preprocessed_path};

/// Words by which an object can tell where on its line something stood, which
/// preprocessed text does not show: of a lambda or a structure without a name,
/// its type's name does.
fn is_telltale(word: &[u8]) -> bool {
    const TELLTALES: [&[u8]; 6] = [
        b"__PRETTY_FUNCTION__",
        b"__FUNCSIG__",
        b"__builtin_COLUMN",
        b"__builtin_LINE",
        b"__builtin_dump_struct",
        b"incbin",
    ];
    TELLTALES.contains(&word) || word.ends_with(b"source_location")
}

/// What earlier builds left that may be of use to this one.
pub(crate) struct Earlier<'a> {
    plan: &'a Plan,
    store: &'a ObjectStore,
    digests: &'a FileDigests,
    /// By job: what its key was built from last.
    candidates: HashMap<usize, Record>,
    /// By source closures, before and now.
    tried: Mutex<HashMap<(Digest, Digest), Tried>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tried {
    /// By another worker, right now.
    Trying,
    Same,
    Different,
}

impl<'a> Earlier<'a> {
    /// Finds what was built last for the keys of the jobs that are missing.
    pub(crate) fn of(
        plan: &'a Plan,
        missing: &[usize],
        store: &'a ObjectStore,
        digests: &'a FileDigests,
    ) -> Self {
        let mut histories: BTreeMap<String, History> = BTreeMap::new();
        let mut candidates = HashMap::new();
        let mut asked: HashMap<usize, ()> = missing.iter().map(|&job| (job, ())).collect();
        for kdb in &plan.kdbs {
            let id = kdb.target.id();
            for row in &kdb.rows {
                let job = &plan.jobs[row.job];
                let preprocessed = job.language != Language::Assembly;
                if !preprocessed || asked.remove(&row.job).is_none() || !has_no_locations(job) {
                    continue;
                }
                let history =
                    histories.entry(id.to_string()).or_insert_with(|| History::read(store, id));
                let toolchain = plan.toolchains[job.toolchain].digest;
                if let Some(record) = history.get(&row.key)
                    && record.toolchain == toolchain
                    && record.job != job.digest
                    && record.source != plan.sources[job.source].digest()
                {
                    candidates.insert(row.job, record.clone());
                }
            }
        }
        Self { plan, store, digests, candidates, tried: Mutex::default() }
    }

    /// The object of an earlier job that gives the same bytes as this one,
    /// stored for this one too. `stage` holds the job's source, `scratch` is
    /// its own.
    ///
    /// # Errors
    /// [`CompileError`] where the build can't go on.
    pub(crate) fn find(
        &self,
        engine: &Engine<'_>,
        starter: &mut Starter<'_>,
        index: usize,
        stage: &Path,
        scratch: &Path,
    ) -> Result<Option<ObjectInfo>, CompileError> {
        let Some(record) = self.candidates.get(&index) else { return Ok(None) };
        let job = &self.plan.jobs[index];
        // What is the same today is not so tomorrow.
        if clock::is_named_by(engine, job) {
            return Ok(None);
        }
        let pair = (record.source, self.plan.sources[job.source].digest());
        {
            let mut tried = self.tried.lock().expect("no panic inside");
            match tried.get(&pair) {
                Some(Tried::Trying | Tried::Different) => return Ok(None),
                Some(Tried::Same) => {}
                None => {
                    tried.insert(pair, Tried::Trying);
                }
            }
        }
        let same = self.same(engine, starter, job, record, stage, scratch)?;
        let outcome = if same.is_some() { Tried::Same } else { Tried::Different };
        self.tried.lock().expect("no panic inside").insert(pair, outcome);
        Ok(same)
    }

    fn same(
        &self,
        engine: &Engine<'_>,
        starter: &mut Starter<'_>,
        job: &Job,
        record: &Record,
        stage: &Path,
        scratch: &Path,
    ) -> Result<Option<ObjectInfo>, CompileError> {
        let about = self.store.about(record.job);
        let fits = about.is_some_and(|about| {
            about.arguments == job.arguments && about.target_id == job.target_id
        });
        // Only while the system's headers are those it was made with does its
        // source preprocess to what it was made from.
        let Some(info) = self.store.lookup(record.job, self.digests).filter(|_| fits) else {
            return Ok(None);
        };
        let before = match known(self.store, record.job, &info) {
            Some(known) => known,
            None => {
                let Some(text) = self.preprocess_earlier(engine, starter, job, record, scratch)?
                else {
                    return Ok(None);
                };
                text
            }
        };
        let Some(now) = preprocess(engine, starter, job, stage, scratch)? else { return Ok(None) };
        engine.toolchains[job.toolchain].check_identity(job.language)?;
        // A header may have changed since it was looked up.
        if !self.store.holds_now(&info, self.digests) {
            return Ok(None);
        }
        remember(self.store, record.job, &info, before)?;
        if before != now {
            return Ok(None);
        }
        remember(self.store, job.digest, &info, now)?;
        tracing::debug!(key = %job.key, "the source differs in text only");
        match self.store.insert_same(job.digest, record.job, &About::of(job)) {
            Err(CompileError::CorruptObject(_)) => Ok(None),
            other => other,
        }
    }

    /// Preprocesses the source as it was when it was built last.
    fn preprocess_earlier(
        &self,
        engine: &Engine<'_>,
        starter: &mut Starter<'_>,
        job: &Job,
        record: &Record,
        scratch: &Path,
    ) -> Result<Option<Digest>, CompileError> {
        let Some(source) = history::source(self.store, record.source) else { return Ok(None) };
        let dir = scratch.join("earlier");
        for file in &source.files {
            let Some(bytes) = history::content(self.store, file.digest) else { return Ok(None) };
            let path = dir.join(&file.path);
            let parent = path.parent().unwrap_or(&dir);
            fs::create_dir_all(parent).map_err(CompileError::io("create", parent))?;
            fs::write(&path, bytes).map_err(CompileError::io("write", &path))?;
        }
        let text = preprocess(engine, starter, job, &dir, scratch)?;
        fs::remove_dir_all(&dir).ok();
        Ok(text)
    }
}

/// Whether no option writes into the object where in the text things stood.
pub(crate) fn has_no_locations(job: &Job) -> bool {
    let telling = ["debug", "record", "-fsanitize", "-fcoverage", "-fxray"];
    !job.arguments.iter().any(|word| {
        let define = word.starts_with("-D") || word.starts_with("-U");
        !define && (word.starts_with("-g") || telling.iter().any(|part| word.contains(part)))
    })
}

/// The digest of what the preprocessor makes of a staged source, markers of
/// files and lines included; `None` where it makes nothing of it, or where
/// the text may not be all that decides.
pub(crate) fn preprocess(
    engine: &Engine<'_>,
    starter: &mut Starter<'_>,
    job: &Job,
    stage: &Path,
    scratch: &Path,
) -> Result<Option<Digest>, CompileError> {
    let file = scratch.join("i");
    let end = engine.preprocess(starter, job, stage, scratch, &[], &file)?;
    match end {
        End::Cancelled => return Err(CompileError::Interrupted),
        End::Exited(0) => {}
        _ => return Ok(None),
    }
    let Ok(text) = fs::read(&file) else { return Ok(None) };
    fs::remove_file(&file).ok();
    Ok((!text.is_empty() && !tells_more(&text, is_telltale)).then(|| Digest::of(&text)))
}

/// The digest of a job's preprocessed text, if it was asked for before with
/// the system's headers that its object was made with.
pub(crate) fn known(store: &ObjectStore, job: Digest, info: &ObjectInfo) -> Option<Digest> {
    let line = String::from_utf8(store.read_file(&preprocessed_path(job)).ok()?).ok()?;
    let (text, headers) = line.split_once(' ')?;
    if headers == headers_of(info) { text.parse().ok() } else { None }
}

/// Keeps it; the job's object is made, or to be made, with the same headers
/// as the one that is given.
pub(crate) fn remember(
    store: &ObjectStore,
    job: Digest,
    info: &ObjectInfo,
    text: Digest,
) -> Result<(), CompileError> {
    if known(store, job, info) == Some(text) {
        return Ok(());
    }
    let line = format!("{text} {}", headers_of(info));
    store.write(&preprocessed_path(job), &[line.as_bytes()])
}

fn headers_of(info: &ObjectInfo) -> String {
    info.deps_digest().map_or_else(|| "none".to_owned(), |set| set.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_of_columns_is_seen() {
        let tells = |text: &str| tells_more(text.as_bytes(), is_telltale);
        assert!(tells("int f() { return __builtin_COLUMN(); }"));
        assert!(tells("auto f = [] { return __PRETTY_FUNCTION__; };"));
        assert!(tells("using std::source_location;"));
        assert!(tells("asm(\".incbin \\\"x\\\"\");"));
        assert!(!tells("# 1 \"a.cpp\"\nint f() { return 7; }"));
    }
}
