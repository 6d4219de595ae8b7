//! Reads plans from rocFFT's log of a program's calls, which it writes with `ROCFFT_LAYER=1` and
//! `ROCFFT_LOG_TRACE_PATH=FILE`.
//!
//! Its log of rocfft-bench's command lines (`ROCFFT_LAYER=2`) can't be used: for plans from complex
//! to real numbers it has the length of the input.
//!
//! Source: rocFFT 1.0.32, `plan.cpp`, the calls of `log_trace`.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use gfxpack_harvest::{LineError, Skips};
use gfxpack_model::Result;

use crate::bench_line::precision_of;
use crate::lines::{MAX_ENTRIES, for_each_line, too_many};
use crate::plan::{Direction, FftPlan, GivenLayout, Placement, Transform, number};

/// The plans of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoggedPlans {
    /// The plans, each once, in the order of the log.
    pub plans: Vec<FftPlan>,
    /// Lines about plans that a list of plans can't express: with a factor, or for several GPUs.
    pub unsupported: u64,
    /// Lines about plans that are cut off, or mixed with those of another thread.
    pub skipped: Skips,
}

/// The layouts that a program sets before it creates a plan; `None` if it also sets what is not
/// supported.
type Description = Option<[GivenLayout; 2]>;

/// The beginning of the functions about plans, before which log tools and MPI may write.
const FUNCTION: &str = "rocfft_plan_";
const DAMAGED: LineError = LineError::new(
    "failed to read the call: it is cut short, or another thread wrote into its line",
    "run the program again for these plans, each process with its own log",
);

/// Reads the plans of a log. `name` is the log's name in errors.
///
/// # Errors
/// If it can't be read, or has too many plans.
pub fn read_trace(name: &str, from: impl Read) -> Result<LoggedPlans> {
    let (mut found, mut seen) = (LoggedPlans::default(), HashSet::new());
    // By address, which is reused after a description is destroyed.
    let mut descriptions: HashMap<String, Description> = HashMap::new();
    for_each_line(name, from, |number, line| {
        let text = String::from_utf8_lossy(line);
        let call = text.find(FUNCTION).and_then(|at| text[at + FUNCTION.len()..].split_once(','));
        let Some((about, arguments)) = call else { return Ok(()) };
        if about != "create" && !about.starts_with("description_") {
            return Ok(());
        }
        let mut damaged = || found.skipped.add(number, line, DAMAGED);
        let arguments = Arguments::parse(arguments);
        let address = arguments.get("description").map(str::to_owned);
        match about {
            "create" => match plan(&arguments, &descriptions) {
                Some(Some(plan)) => {
                    if seen.insert(plan.clone()) {
                        found.plans.push(plan);
                    }
                }
                Some(None) => found.unsupported += 1,
                None => damaged(),
            },
            "description_create" | "description_destroy" => {
                address.map(|address| descriptions.remove(&address));
            }
            _ => {
                let Some(address) = address else {
                    damaged();
                    return Ok(());
                };
                let description =
                    descriptions.entry(address).or_insert_with(|| Some(Default::default()));
                match (layout(&arguments), &mut *description) {
                    _ if about != "description_set_data_layout" => *description = None,
                    (Some(layout), Some(known)) => *known = layout,
                    (Some(_), None) => {}
                    (None, _) => damaged(),
                }
            }
        }
        if found.plans.len().max(descriptions.len()) > MAX_ENTRIES {
            return Err(too_many(name));
        }
        Ok(())
    })?;
    Ok(found)
}

/// The arguments of a call: `name,value,name,[value,value]`.
struct Arguments<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Arguments<'a> {
    fn parse(text: &'a str) -> Self {
        let mut words = Vec::new();
        let mut rest = text.trim_end();
        while !rest.is_empty() {
            let end = match rest.strip_prefix('[').and_then(|list| list.find(']')) {
                Some(end) => end + 2,
                None => rest.find(',').unwrap_or(rest.len()),
            };
            let (word, after) = rest.split_at(end);
            words.push(word);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        Self(words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(number)
    }

    /// A list of numbers in brackets.
    fn numbers(&self, name: &str) -> Option<Vec<u64>> {
        let list = self.get(name)?.strip_prefix('[')?.strip_suffix(']')?;
        list.split(',').filter(|word| !word.is_empty()).map(number).collect()
    }
}

/// The layouts that a call sets for input and output; `None` if the call can't be read.
fn layout(arguments: &Arguments<'_>) -> Option<[GivenLayout; 2]> {
    let array = |type_: &str, offsets: &str, strides: &str, distance: &str| {
        let array_type = match arguments.get(type_)? {
            "complex_interleaved" => Some(0),
            "complex_planar" => Some(1),
            "real" => Some(2),
            "hermitian_interleaved" => Some(3),
            "hermitian_planar" => Some(4),
            // The default.
            "unset" => None,
            _ => return None,
        };
        // In rocFFT, the fastest dimension comes first.
        let strides: Vec<u64> = arguments.numbers(strides)?.into_iter().rev().collect();
        Some(GivenLayout {
            array_type,
            offsets: arguments.numbers(offsets)?,
            strides: Some(strides).filter(|strides| !strides.is_empty()),
            distance: Some(arguments.number(distance)?).filter(|distance| *distance > 0),
        })
    };
    Some([
        array("in_array_type", "in_offsets", "in_strides", "in_distance")?,
        array("out_array_type", "out_offsets", "out_strides", "out_distance")?,
    ])
}

/// The plan that a call creates, or nothing if a list can't express it; `None` if the call can't be
/// read.
fn plan(
    arguments: &Arguments<'_>,
    descriptions: &HashMap<String, Description>,
) -> Option<Option<FftPlan>> {
    let (transform, direction) = match arguments.get("transform_type")? {
        "complex_forward" => (Transform::C2c, Direction::Forward),
        "complex_inverse" => (Transform::C2c, Direction::Inverse),
        "real_forward" => (Transform::R2c, Direction::Forward),
        "real_inverse" => (Transform::C2r, Direction::Inverse),
        _ => return None,
    };
    let precision = precision_of(arguments.get("precision")?).ok()?;
    let placement = match arguments.get("placement")? {
        "inplace" => Placement::InPlace,
        "notinplace" => Placement::OutOfPlace,
        _ => return None,
    };
    let lengths = arguments.numbers("lengths")?;
    let batch = arguments.number("number_of_transforms")?;
    if !(1..=3).contains(&lengths.len()) || lengths.contains(&0) || batch == 0 {
        return None;
    }
    let lengths: Vec<u64> = lengths.into_iter().rev().collect();
    let arrays = match descriptions.get(arguments.get("description")?) {
        Some(None) => return Some(None),
        Some(Some(layouts)) => layouts.clone(),
        None => Default::default(),
    };
    if arrays.iter().flat_map(|array| &array.strides).any(|list| list.len() != lengths.len()) {
        return Some(None);
    }
    let plan = FftPlan { transform, direction, precision, placement, lengths, batch, layout: None };
    plan.checked(arrays).ok().map(Some)
}
