use std::io::{BufReader, Read, repeat};

use gfxpack_rocfft::{LoggedPlans, read_rtc_log, read_trace};

#[track_caller]
fn trace(log: &str) -> (Vec<String>, [u64; 2]) {
    let LoggedPlans { plans, unsupported, skipped, .. } =
        read_trace("log", log.as_bytes()).unwrap();
    (plans.iter().map(ToString::to_string).collect(), [unsupported, skipped.lines()])
}

/// A line as rocFFT 1.0.32 wrote it, with these values.
fn create(words: [&str; 4], lengths: &str, batch: u32, description: &str) -> String {
    let [placement, transform, precision, dimensions] = words;
    format!(
        "rocfft_plan_create,plan,0x5555936079e0,placement,{placement},transform_type,{transform},\
         precision,{precision},dimensions,{dimensions},lengths,[{lengths}],\
         number_of_transforms,{batch},description,{description}\n"
    )
}

/// The same for a layout.
fn layout(arrays: [&str; 2], strides: [&str; 2], distances: [u32; 2]) -> String {
    format!(
        "rocfft_plan_description_set_data_layout,description,0xd,in_array_type,{},\
         out_array_type,{},in_offsets,[0],out_offsets,[0],in_strides,[{}],in_distance,{},\
         out_strides,[{}],out_distance,{}\n",
        arrays[0], arrays[1], strides[0], distances[0], strides[1], distances[1]
    )
}

const COMPLEX: [&str; 2] = ["complex_interleaved"; 2];

#[test]
fn plans_are_read_whatever_is_written_before_the_calls() {
    let plain = layout(COMPLEX, ["1,32", ""], [400, 0])
        + &create(["notinplace", "complex_forward", "single", "2"], "20,12", 3, "0xd");
    let expected = trace(&plain).0;
    assert_eq!(expected.len(), 1);
    for before in
        ["[rank1]: ", "0: ", "[1,0]<stderr>:", "2026-09-01T10:11:12.3Z stderr F ", "\u{1b}[33m"]
    {
        let log: String =
            plain.lines().map(|line| format!("{before}{line}\u{1b}[0m\r\n")).collect();
        assert_eq!(trace(&log), (expected.clone(), [0, 0]), "{before}");
    }
    let json: String = plain.lines().map(|line| format!("{{\"log\":\"{line}\\n\"}}\n")).collect();
    assert_eq!(trace(&json), (expected.clone(), [0, 0]));
    let several = "3: rocfft_plan_description_set_comm,description,0xd,comm_type,mpi\n";
    assert_eq!(trace(&format!("{several}3: {plain}")), (vec![], [1, 0]));
}

#[test]
fn layouts_belong_to_the_plans_that_are_created_with_them() {
    let forward = ["notinplace", "complex_forward", "single", "2"];
    let strided = "rocfft-bench --length 12 20 -b 3 -o -t 0 --precision single --itype 0 \
                   --istride 32 1 --idist 400 --ioffset 0 0 --otype 0 --ostride 20 1 --odist 240 \
                   --ooffset 0 0";
    for (setup, expected) in [
        // rocFFT's default layout, written out or not.
        (layout(COMPLEX, ["1,20", "1,20"], [240, 240]), "c2c sp op 12x20 batch 3 fwd"),
        (layout(COMPLEX, ["", ""], [0, 0]), "c2c sp op 12x20 batch 3 fwd"),
        (layout(["unset"; 2], ["1,20", ""], [0, 240]), "c2c sp op 12x20 batch 3 fwd"),
        (layout(COMPLEX, ["1,32", ""], [400, 0]), strided),
    ] {
        let log = format!(
            "rocfft_plan_description_create,description,0xd\n{setup}{}",
            create(forward, "20,12", 3, "0xd")
        );
        assert_eq!(trace(&log), (vec![expected.to_owned()], [0, 0]), "{setup}");
    }
    // The address is reused for a description without properties.
    let log = [
        &layout(COMPLEX, ["1,32", ""], [400, 0])[..],
        "rocfft_plan_description_destroy,description,0xd\n",
        "rocfft_plan_description_create,description,0xd\n",
        &create(forward, "20,12", 3, "0xd"),
    ];
    assert_eq!(trace(&log.concat()).0, ["c2c sp op 12x20 batch 3 fwd"]);
}

#[test]
fn plans_that_a_list_cannot_express_are_counted() {
    let plan = create(["inplace", "complex_forward", "single", "1"], "64", 1, "0xd");
    let scale = "rocfft_plan_description_set_scale_factor,description,0xd,scale,0.5\n";
    let field = "rocfft_plan_description_add_infield,description,0xd,field,0xf\n";
    let strides = layout(COMPLEX, ["1,2", ""], [0, 0]);
    for unsupported in [scale, field, &strides] {
        assert_eq!(trace(&format!("{unsupported}{plan}")), (vec![], [1, 0]), "{unsupported}");
    }
    let planar = layout(["sideways"; 2], ["", ""], [0, 0]);
    assert_eq!(trace(&planar), (vec![], [0, 1]));
    for (from, to) in [
        ("complex_forward", "sideways"),
        ("inplace", "rocfft_execute,plan"),
        (",batch", ""),
        ("[64]", "[64,x]"),
        ("[64]", "[0]"),
        ("[64]", "[1,2,3,4]"),
        ("[64]", "[64"),
        ("single", ""),
    ] {
        let damaged = plan.replace(from, to);
        let expected = u64::from(damaged != plan);
        assert_eq!(trace(&damaged).1, [0, expected], "{damaged}");
    }
    for at in 19..plan.len() - 18 {
        assert_eq!(trace(&plan[..at]), (vec![], [0, 1]), "{}", &plan[..at]);
    }
}

#[test]
fn endless_lines_and_unreadable_files_are_errors() {
    let mut endless = BufReader::new(repeat(b'a').take(10 << 20));
    assert_eq!(read_trace("log", &mut endless).unwrap(), LoggedPlans::default());
    let directory = BufReader::new(std::fs::File::open("/").unwrap());
    let error = read_rtc_log("log", directory).unwrap_err();
    assert!(error.io_kind().is_some(), "{error:?}");
    assert_eq!(error.to_string(), "failed to read `log`");
}
