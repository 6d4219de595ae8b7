use gfxpack_rocfft::{FftPlan, read_plans};

#[track_caller]
fn check(line: &str, expected: Result<&str, &str>) {
    let found = line.parse::<FftPlan>();
    if let Ok(plan) = &found {
        assert_eq!(
            plan.to_string().parse().as_ref(),
            Ok(plan),
            "the canonical line is another plan"
        );
    }
    let found = found.map(|plan| plan.to_string()).map_err(|error| error.to_string());
    assert_eq!(found.as_deref().map_err(String::as_str), expected, "{line}");
}

#[test]
fn plans_are_read_from_lines_of_text() {
    check("c2c sp ip 1024x1024 batch 8", Ok("c2c sp ip 1024x1024 batch 8"));
    check(" c2c  half op 7 both batch 1 ", Ok("c2c half op 7"));
    check("c2c dp ip 2x3x4 inv batch 3", Ok("c2c dp ip 2x3x4 batch 3 inv"));
    check("r2c sp op 100 fwd", Ok("r2c sp op 100"));
    check("c2r dp ip 100 batch 2", Ok("c2r dp ip 100 batch 2"));
}

#[test]
fn the_options_of_rocfft_bench_are_plans() {
    check("rocfft-bench --length 1024 512 -b 8", Ok("c2c sp ip 1024x512 batch 8 fwd"));
    check("/x/bin/rocfft-bench --length=64 -t 1 --double -o", Ok("c2c dp op 64 inv"));
    check("--length 4 5 6 -t2 --precision half -N 10", Ok("r2c half ip 4x5x6"));
    check("-t 3 --batchSize=4 --length 9 --notInPlace --device 1", Ok("c2r sp op 9 batch 4"));
    check("--length 8 --ignore_runtime_failures -g 1", Ok("c2c sp ip 8 fwd"));
}

/// As in the library's own log.
#[test]
fn rocffts_default_layout_is_dropped() {
    check(
        "rocfft-bench --length 16 32 24 -b 2 -t 1 --precision single --itype 0 --otype 0 \
         --istride 768 24 1 --ostride 768 24 1 --idist 12288 --odist 12288 --ioffset 0 0 \
         --ooffset 0 0 ",
        Ok("c2c sp ip 16x32x24 batch 2 inv"),
    );
    check(
        "rocfft-bench --length 256 -b 1 -o -t 2 --precision double --itype 2 --otype 3 \
         --istride 1 --ostride 1 --idist 256 --odist 129 --ioffset 0 0 --ooffset 0 0",
        Ok("r2c dp op 256"),
    );
    check(
        "rocfft-bench --length 1000 -b 2 -t 2 --precision single --itype 2 --otype 3 \
         --istride 1 --ostride 1 --idist 1002 --odist 501 --ioffset 0 0 --ooffset 0 0",
        Ok("r2c sp ip 1000 batch 2"),
    );
    check(
        "rocfft-bench --length 12 20 -b 1 -t 3 --itype 3 --otype 2 --istride 11 1 \
         --ostride 22 1 --idist 132 --odist 264",
        Ok("c2r sp ip 12x20"),
    );
}

#[test]
fn other_layouts_are_kept() {
    check(
        "--length 4 6 -b 3 --istride 8 1 --idist 40",
        Ok("rocfft-bench --length 4 6 -b 3 -t 0 --precision single --itype 0 --istride 8 1 \
            --idist 40 --ioffset 0 0 --otype 0 --ostride 6 1 --odist 24 --ooffset 0 0"),
    );
    check(
        "--length 256 -o -t 2 --double --idist 258 --ioffset 1 --otype 4",
        Ok("rocfft-bench --length 256 -b 1 -o -t 2 --precision double --itype 2 --istride 1 \
            --idist 258 --ioffset 1 0 --otype 4 --ostride 1 --odist 129 --ooffset 0 0"),
    );
}

#[test]
fn invalid_plans_are_reported_with_the_word() {
    let huge = "failed to accept the plan: its transforms have too many values";
    for (line, expected) in [
        ("c2x sp ip 8", "failed to read `c2x`: `c2c`, `r2c` or `c2r` expected"),
        ("c2c single ip 8", "failed to read `single`: `half`, `sp` or `dp` expected"),
        ("c2c sp xp 8", "failed to read `xp`: `ip` or `op` expected"),
        ("c2c sp ip", "failed to read the plan: lengths like `1024x1024` expected at its end"),
        ("c2c sp ip 8x0", "failed to read `0`: a number from 1 expected"),
        ("c2c sp ip 8x", "failed to read ``: a number from 1 expected"),
        ("c2c sp ip +8", "failed to read `+8`: a number from 1 expected"),
        ("c2c sp ip 1x2x3x4", "failed to read `1x2x3x4`: one to three lengths expected"),
        ("c2c sp ip 8 batch", "failed to read the plan: a number from 1 expected at its end"),
        ("c2c sp ip 8 batch 2 batch 3", "failed to read `batch`: the end expected"),
        ("c2c sp ip 8 fwd inv", "failed to read `inv`: the end expected"),
        ("c2c sp ip 8 8", "failed to read `8`: `fwd`, `inv` or `both` expected"),
        (
            "r2c sp ip 8 inv",
            "failed to read `inv`: the direction of a real transform, `r2c fwd` or `c2r inv`, expected",
        ),
        (
            "c2c sp ip 99999999999999999999",
            "failed to read `99999999999999999999`: a number from 1 expected",
        ),
        ("c2c sp ip 4294967296x4294967296", huge),
        ("--length 4294967296 -b 4294967296", huge),
        ("rocfft-bench", "failed to read the plan: `--length` expected at its end"),
        ("-b 8", "failed to read the plan: `--length` expected at its end"),
        ("--length", "failed to read the plan: a number from 1 expected at its end"),
        (
            "--length 1 2 3 4",
            "failed to read `4`: rocfft-bench has no such option, or it is there twice",
        ),
        ("--length 8 -t 4", "failed to read `4`: a number from 0 to 3 expected"),
        (
            "--length 8 -x 4",
            "failed to read `-x`: rocfft-bench has no such option, or it is there twice",
        ),
        (
            "--length 8 -oé",
            "failed to read `-oé`: rocfft-bench has no such option, or it is there twice",
        ),
        (
            "--length 8 --double --precision single",
            "failed to read `--precision`: rocfft-bench has no such option, or it is there twice",
        ),
        ("--length 8 --istride 0", "failed to read `0`: a number from 1 expected"),
        (
            "--length 8 8 --ostride 2",
            "failed to read `--ostride`: as many strides as lengths after expected",
        ),
        ("--length 8 --itype 5", "failed to read `5`: a number from 0 to 4 expected"),
        ("--length 8 --ioffset", "failed to read the plan: a number expected at its end"),
        ("--length 8 --idist 288230376151711744 -b 2", huge),
        (
            "--length 8 --scalefactor 2",
            "failed to accept `--scalefactor`: plans with that are not supported",
        ),
    ] {
        check(line, Err(expected));
    }
}

#[test]
fn a_list_gives_each_plan_once_and_errors_have_their_line() {
    let list =
        "# from a program\nc2c sp ip 8\n\n--length 8 # the same, forward\r\nc2c sp ip 8 both\n";
    let (plans, skipped) = read_plans("plans", list.as_bytes()).unwrap();
    assert_eq!(skipped.lines(), 0);
    let lines: Vec<_> = plans.iter().map(FftPlan::to_string).collect();
    assert_eq!(lines, ["c2c sp ip 8", "c2c sp ip 8 fwd"]);
    assert_eq!(plans[0].transform_types(), [0, 1]);
    let utf16: Vec<u8> = list.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read_plans("plans", &utf16[..]).unwrap().0, plans);
    let prefixed = b"2026-09-01T10:11:12Z c2c sp ip 8\r[0] rocfft-bench --length 8";
    assert_eq!(read_plans("plans", &prefixed[..]).unwrap().0, plans);

    let (one, skipped) =
        read_plans("plans", &b"c2c sp ip 8\n\nc2c sp\nx\xff\nc2c dp\n"[..]).unwrap();
    assert_eq!(one.len(), 1);
    let skipped: Vec<_> = skipped.iter().map(|one| (one.first, one.lines, &*one.text)).collect();
    assert_eq!(skipped, [(3, 2, "c2c sp"), (4, 1, "x\u{fffd}")]);

    let refused = |bytes: &[u8]| read_plans("x", bytes).unwrap_err();
    let nothing = "failed to find a plan in `x`";
    assert_eq!(refused(b"# none\n").to_string(), nothing);
    let error = refused(b"\nc2c sp\n");
    assert_eq!(
        error.to_string(),
        "failed to read `x:2`: failed to read the plan: `ip` or `op` expected at its end"
    );
    assert!(error.hint().unwrap().contains("c2c sp ip"));
    assert_eq!(refused(&vec![b' '; 1 << 20]).to_string(), nothing);
}
