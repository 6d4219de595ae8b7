//! Examples at the end of every command's help and manual page.

use clap::Command;

/// The examples of a command, by the words after `gfxpack`.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "dist",
        &[
            "gfxpack dist --problems problems.txt --miopen debian:sid --layout debian --target gfx1100@48 --out dist",
            "gfxpack dist --keys keys.jsonl --source-dir MIOpen/src/kernels --license MIT --target gfx906@60 --out dist",
            "gfxpack dist --plans plans.txt --rocfft debian:sid --layout debian --target gfx90a --out dist",
        ],
    ),
    (
        "plan",
        &[
            "gfxpack plan --keys keys.jsonl --source-dir MIOpen/src/kernels --target gfx906@60",
            "gfxpack plan --manifest kernels.toml --target gfx1030 --out plan",
        ],
    ),
    ("build", &["gfxpack build --manifest kernels.toml --target gfx1030,gfx90a@104 --out out"]),
    (
        "ask",
        &[
            "gfxpack ask --problems problems.txt --miopen debian:sid --target gfx906@60 --out keys.jsonl",
            "gfxpack ask --plans plans.txt --rocfft debian:sid --target gfx90a --sources src",
        ],
    ),
    ("rocfft-helper", &["gfxpack rocfft-helper gfx90a <source >object"]),
    ("miopen", &["gfxpack miopen --miopen debian:sid"]),
    (
        "package",
        &[
            "gfxpack package out/kdb/gfx906_60.kdb --license MIT --out dist",
            "gfxpack package out/kdb/gfx90a68.kdb --format deb --layout debian --out dist",
        ],
    ),
    ("merge", &["gfxpack merge --plan plan --out merged shards"]),
    ("status", &["gfxpack status shards --missing"]),
    ("submit", &["gfxpack submit slurm --plan plan --out shards --shards 16"]),
    ("submit slurm", &["gfxpack submit slurm --plan plan --out shards --shards 16"]),
    ("wait", &["gfxpack wait shards"]),
    ("export", &["gfxpack export ninja --plan plan --out ninja"]),
    ("export ninja", &["gfxpack export ninja --plan plan --out ninja", "ninja -C ninja"]),
    ("repo", &["gfxpack repo dist --sign-key KEY"]),
    ("install", &["gfxpack install --from dist", "gfxpack install --dry-run"]),
    ("verify", &["gfxpack verify dist", "gfxpack verify miopen-hip-gfx906-60kdb_1-1_all.deb"]),
    ("kdb", &["gfxpack kdb info gfx906_60.kdb", "gfxpack kdb verify gfx906_60.kdb"]),
    ("kdb verify", &["gfxpack kdb verify gfx906_60.kdb"]),
    ("kdb info", &["gfxpack kdb info gfx906_60.kdb"]),
    ("kdb list", &["gfxpack kdb list gfx906_60.kdb --filter softmax"]),
    (
        "kdb get",
        &["gfxpack kdb get gfx906_60.kdb MIOpenSoftmax.cl.o ' -DX=1 -mcpu=gfx906' --out kernel.o"],
    ),
    ("kdb merge", &["gfxpack kdb merge A.kdb B.kdb USER.ukdb --out ALL.kdb"]),
    ("kdb diff", &["gfxpack kdb diff OLD.kdb NEW.kdb --exit-code"]),
    ("kdb convert", &["gfxpack kdb convert gfx906_60.kdb --blob raw --out raw/gfx906_60.kdb"]),
    ("kdb split", &["gfxpack kdb split gfx906_60.kdb --by 500MB --out parts"]),
    ("kdb repair", &["gfxpack kdb repair DAMAGED.kdb --out gfx906_60.kdb"]),
    ("kdb check", &["gfxpack kdb check gfx906_60.kdb --problems problems.txt --miopen debian:sid"]),
    ("kdb stats", &["gfxpack kdb stats gfx906_60.kdb --html stats.html"]),
    (
        "kdb symbols",
        &["gfxpack kdb symbols gfx906_60.kdb MIOpenSoftmax.cl.o ' -DX=1 -mcpu=gfx906'"],
    ),
    ("kdb disasm", &["gfxpack kdb disasm gfx906_60.kdb MIOpenSoftmax.cl.o ' -DX=1 -mcpu=gfx906'"]),
    (
        "run",
        &["gfxpack run -- python3 train.py", "gfxpack run -o missed.jsonl -- ./app --batch 32"],
    ),
    (
        "harvest",
        &[
            "gfxpack harvest run.log --missed -o keys.jsonl",
            "gfxpack harvest run.log --retarget gfx942,gfx90a -o keys.jsonl",
        ],
    ),
    ("harvest commands", &["gfxpack harvest commands run.log -o commands.sh"]),
    (
        "problems",
        &[
            "gfxpack problems resnet50 --batch 1,32 --type fp32,fp16 -o problems.txt",
            "gfxpack problems --list",
        ],
    ),
    ("tune", &["gfxpack tune env incremental", "gfxpack tune plan run.log -o tune"]),
    ("tune plan", &["gfxpack tune plan run.log -o tune", "tune/tune.sh"]),
    (
        "tune collect",
        &["gfxpack tune collect tune --system /opt/rocm/share/miopen/db -o databases"],
    ),
    ("tune env", &["gfxpack tune env incremental", "gfxpack tune env off"]),
    ("cache", &["gfxpack cache stats", "gfxpack cache gc --max-size 20GB"]),
    ("cache stats", &["gfxpack cache stats"]),
    ("cache gc", &["gfxpack cache gc --max-size 20GB"]),
    ("cache verify", &["gfxpack cache verify"]),
    ("perfdb", &["gfxpack perfdb lint gfx906_60.db.txt"]),
    ("perfdb merge", &["gfxpack perfdb merge SYSTEM.db.txt USER.udb.txt -o gfx906_60.db.txt"]),
    ("perfdb lint", &["gfxpack perfdb lint --strict gfx906_60.db.txt"]),
    ("perfdb stats", &["gfxpack perfdb stats gfx906_60.HIP.fdb.txt"]),
    ("caches", &["gfxpack caches list", "gfxpack caches clear miopen --keep-newest"]),
    ("caches list", &["gfxpack caches list"]),
    ("caches size", &["gfxpack caches size miopen"]),
    ("caches env", &["gfxpack caches env --to /local/scratch --per-rank"]),
    ("caches clear", &["gfxpack caches clear miopen --keep-newest --dry-run"]),
    ("targets", &["gfxpack targets"]),
    ("toolchains", &["gfxpack toolchains"]),
    ("detect", &["gfxpack detect", "p=$(gfxpack detect --packages) && sudo apt install $p"]),
    ("lookup", &["gfxpack lookup MIOpenSoftmax.cl.o ' -DX=1 -mcpu=gfx906' --target gfx906@60"]),
    ("explain", &["gfxpack explain MIOpenSoftmax.cl.o ' -DX=1 -mcpu=gfx906' --target gfx906@60"]),
    ("doctor", &["gfxpack doctor"]),
    ("env", &["gfxpack env", "gfxpack env --miopen-version 3.5"]),
    (
        "completions",
        &["gfxpack completions bash > ~/.local/share/bash-completion/completions/gfxpack"],
    ),
    ("manual", &["gfxpack manual man && man man/gfxpack-dist.1"]),
];

/// The command line with the examples of every command.
pub(crate) fn with_examples(command: Command) -> Command {
    add(command, "")
}

fn add(command: Command, name: &str) -> Command {
    let mut command = command;
    if let Some((_, lines)) = EXAMPLES.iter().find(|(of, _)| *of == name) {
        let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
        command = command.after_help(format!("Examples:\n{}", lines.join("\n")));
    }
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    for one in below {
        let path = if name.is_empty() { one.clone() } else { format!("{name} {one}") };
        command = command.mut_subcommand(one, |below| add(below, &path));
    }
    command
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    fn names(command: &Command, above: &str, all: &mut Vec<String>) {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let name = format!("{above} {}", below.get_name()).trim().to_owned();
            names(below, &name, all);
            all.push(name);
        }
    }

    #[test]
    fn every_command_has_examples_that_are_understood() {
        let mut all = Vec::new();
        names(&Args::command(), "", &mut all);
        for name in &all {
            let (_, lines) = EXAMPLES.iter().find(|(of, _)| of == name).expect(name);
            let own: Vec<_> =
                lines.iter().filter(|line| line.starts_with(&format!("gfxpack {name}"))).collect();
            let of_below = lines.iter().any(|line| line.starts_with("gfxpack"));
            assert!(!own.is_empty() || of_below, "{name}");
            for line in own {
                // What a shell does with it is not gfxpack's.
                let end = [" > ", " && "].into_iter().find_map(|mark| line.find(mark));
                let line = &line[..end.unwrap_or(line.len())];
                let words = shlex::split(line).expect(line);
                if let Err(error) = Args::command().try_get_matches_from(words) {
                    panic!("{line}: {error}");
                }
            }
        }
        for (name, _) in EXAMPLES {
            assert!(all.iter().any(|known| known == name), "there is no command `{name}`");
        }
    }

    #[test]
    fn help_ends_with_them() {
        let mut command = with_examples(Args::command());
        let help = command.find_subcommand_mut("merge").expect("a command").render_long_help();
        let help = help.to_string();
        assert!(
            help.trim_end().ends_with("gfxpack merge --plan plan --out merged shards"),
            "{help}"
        );
    }
}
