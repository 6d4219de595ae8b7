//! `explain`: shows why a kernel is not found, with the files that are searched
//! and the nearest keys.

use gfxpack_pipeline::lookup_answers::FileAnswer;
use gfxpack_pipeline::text::{elided, key_in_words};
use gfxpack_runtime::explain::{UnaskedKdb, advice, unasked_kdbs};
use gfxpack_runtime::{KernelKey, NearestKey, NearestKeys, Target};

use super::lookup;
use crate::args::Explain;
use crate::fail::Result;
use crate::output::{Output, display, joined, message};

/// Explains the lookup, even if the kernel is found.
pub(crate) fn run(args: &Explain, kernel_args: &str, output: &Output) -> Result {
    let (cache, key, answers) = lookup::look_up(&args.kernel, kernel_args, false, output)?;
    let target = &cache.config().target;
    output.text(&format!("kernel  {}", key_in_words(&key)));
    output.text(&format!("device  {target}"));
    let asked = cache.files();
    if asked.is_empty() {
        output.warn("no file is asked: `gfxpack env` and `gfxpack doctor` tell why");
    }
    for (layer, file) in &asked {
        print_file(&answers.of_file(*layer, file), output);
    }
    lookup::print(&answers, output);
    if answers.runtime.found.is_none() {
        print_advice(&key, target, output);
        let max_bytes = args.kernel.asked.max_object.bytes;
        let files = asked.iter().map(|(_, file)| file.as_path());
        let nearest = NearestKeys::search(&key, files, args.nearest, max_bytes);
        print_nearest(&key, &nearest, output);
        print_unasked_kdbs(&unasked_kdbs(&key, target, &asked, max_bytes), target, output);
    }
    message!(output, "explained", {
        "kernel_name": key.kernel_name, "kernel_args": key.kernel_args, "target": target,
        "found": answers.miopen_finds(), "miopen": answers.miopen_message(),
        "runtime": answers.runtime_message(),
    });
    Ok(())
}

/// Prints the result for one file.
fn print_file(answer: &FileAnswer, output: &Output) {
    output.message("file", answer);
    output.text(&format!("{:<6}  {}", answer.layer, answer.file));
    output.text(&format!("        {}", answer.detail));
    if !answer.miopen_opens && answer.state != "no-file" {
        output.text("        MIOpen does not open it");
    }
    if let Some(hint) = answer.hint {
        output.text(&format!("        hint: {hint}"));
    }
}

/// Prints advice that follows from the key alone.
fn print_advice(key: &KernelKey, target: &Target, output: &Output) {
    let Some(advice) = advice(key, target) else { return };
    message!(output, "advice", { "message": advice });
    output.text(&format!("note    {advice}"));
}

fn print_nearest(key: &KernelKey, found: &NearestKeys, output: &Output) {
    let NearestKeys { of_that_name, keys, names, .. } = found;
    if *of_that_name == 0 && !names.is_empty() {
        message!(output, "names", { "nearest": names });
        let (name, quoted) =
            (&key.kernel_name, joined(names.iter().map(|name| format!("`{name}`"))));
        output.text(&format!("no kernel is called `{name}`; the nearest names are {quoted}"));
    }
    if *of_that_name > 0 {
        let plural = if *of_that_name == 1 { "kernel has" } else { "kernels have" };
        output.text(&format!("{of_that_name} {plural} that name; the nearest:"));
    }
    for NearestKey { differing_words, kernel_args, file, asked, stored, .. } in keys {
        message!(output, "nearest", {
            "file": display(file), "kernel_args": kernel_args, "differing_words": differing_words,
            "asked": asked, "stored": stored,
        });
        let word = if *differing_words == 1 { "word differs" } else { "words differ" };
        output.text(&format!("{differing_words} {word} in {}", file.display()));
        output.text(&format!("  asked   {}", elided(asked)));
        output.text(&format!("  stored  {}", elided(stored)));
    }
}

/// Prints kdbs that contain the key but are not searched.
fn print_unasked_kdbs(others: &[UnaskedKdb], target: &Target, output: &Output) {
    for UnaskedKdb { file, target: serves, .. } in others {
        message!(output, "elsewhere", { "file": display(file), "target": serves });
        let file = file.display();
        output.text(&format!("note    {file} has this very key, and is not asked for {target}"));
    }
}
