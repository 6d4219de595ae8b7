//! How far a build is.

use std::time::{Duration, Instant};

use gfxpack_compile::{Estimator, Event};
use gfxpack_model::Language;
use gfxpack_plan::plan::Plan;

/// Languages are estimated apart.
pub(crate) fn language_class(language: Language) -> usize {
    match language {
        Language::Hip => 0,
        Language::OpenclC => 1,
        Language::Assembly => 2,
    }
}

/// How far a build is, in jobs and in work.
pub(super) struct Count {
    pub(super) begun: Instant,
    pub(super) estimator: Estimator,
    pub(super) cached: usize,
    /// Known to be refused.
    pub(super) refused: usize,
    pub(super) to_do: usize,
    pub(super) compiled: usize,
    pub(super) failed: usize,
}

impl Count {
    pub(super) fn new() -> Self {
        Self {
            begun: Instant::now(),
            estimator: Estimator::default(),
            cached: 0,
            refused: 0,
            to_do: 0,
            compiled: 0,
            failed: 0,
        }
    }

    pub(super) fn event(&mut self, plan: &Plan, event: &Event) {
        let now = self.begun.elapsed();
        match event {
            Event::Looked { cached, refused } => {
                (self.cached, self.refused) = (cached.len(), refused.len());
                self.to_do = plan.jobs.len() - cached.len() - refused.len();
                (self.compiled, self.failed) = (0, 0);
            }
            Event::Queued { workers, jobs } => {
                let queue = jobs
                    .iter()
                    .map(|(job, expected)| (*job, language_class(plan[*job].language), *expected));
                self.estimator.queued(*workers, queue, now);
            }
            Event::Warning { .. } | Event::Prepared { .. } => {}
            Event::Started { job, .. } => self.estimator.started(*job, now),
            Event::Finished { job, .. } => {
                self.compiled += 1;
                self.estimator.ended(*job, now);
            }
            Event::Failed { job, .. } => {
                self.failed += 1;
                self.estimator.ended(*job, now);
            }
        }
    }

    pub(super) fn done(&self) -> usize {
        self.compiled + self.failed
    }

    pub(super) fn left(&self) -> Option<Duration> {
        let left = self.estimator.left(self.begun.elapsed());
        left.filter(|_| self.done() < self.to_do)
    }

    pub(super) fn refused_words(&self) -> String {
        match self.refused {
            0 => String::new(),
            refused => format!(", {refused} refused before"),
        }
    }

    pub(super) fn failed_words(&self) -> String {
        if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() }
    }
}
