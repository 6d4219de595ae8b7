//! How far a build is.

use std::time::{Duration, Instant};

use gfxpack_compile::Event;
use gfxpack_plan::plan::Plan;

use super::estimate::Estimator;
use crate::output::if_any;

/// The progress of a build, in jobs and in work.
#[derive(Debug)]
pub(super) struct BuildCount {
    pub(super) begun: Instant,
    estimator: Estimator,
    /// Jobs whose objects the store has.
    pub(super) cached: usize,
    /// Jobs with a kept refusal.
    pub(super) refused: usize,
    /// Jobs that have to be run.
    pub(super) to_do: usize,
    /// How many of them were compiled.
    pub(super) compiled: usize,
    /// How many of them failed.
    pub(super) failed: usize,
}

impl Default for BuildCount {
    fn default() -> Self {
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
}

impl BuildCount {
    pub(super) fn event(&mut self, plan: &Plan, event: &Event) {
        let now = self.begun.elapsed();
        match event {
            Event::FoundInCache { cached, refused } => {
                (self.cached, self.refused) = (cached.len(), refused.len());
                self.to_do = plan.jobs.len() - cached.len() - refused.len();
                (self.compiled, self.failed) = (0, 0);
            }
            Event::Queued { jobs, .. } => {
                // Each language has its own estimate.
                let queue = jobs
                    .iter()
                    .map(|(job, expected)| (*job, plan[*job].language as usize, *expected));
                self.estimator.queued(queue);
            }
            Event::Warning { .. } | Event::HeadersPrecompiled { .. } => {}
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

    /// Jobs that ran.
    pub(super) fn done(&self) -> usize {
        self.compiled + self.failed
    }

    /// How much of the work is done, from 0 to 1.
    pub(super) fn fraction(&self) -> f64 {
        self.estimator.fraction()
    }

    /// How long the remaining jobs will take, if that is known.
    pub(super) fn left(&self) -> Option<Duration> {
        self.estimated().filter(|_| self.done() < self.to_do)
    }

    /// Like [`BuildCount::left`], but also `Some` when the build is done.
    pub(super) fn estimated(&self) -> Option<Duration> {
        self.estimator.left(self.begun.elapsed())
    }

    /// The text `, 2 refused before`; empty if there are none.
    pub(super) fn refused_words(&self) -> String {
        if_any(self.refused, |refused| format!(", {refused} refused before"))
    }

    /// The text `, 2 failed`; empty if there are none.
    pub(super) fn failed_words(&self) -> String {
        if_any(self.failed, |failed| format!(", {failed} failed"))
    }
}
