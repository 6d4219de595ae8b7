//! Tests of what inputs come to.

use gfxpack_plan::key_list::parse_keys;

use super::*;

fn request(target: &str, options: &[&str]) -> TargetRequest {
    let line = |options: &&str| {
        format!(r#"{{"kernel_name":"a.cl.o","kernel_args":"{options} -mcpu=gfx906"}}"#)
    };
    let lines: Vec<String> = options.iter().map(line).collect();
    let keys = parse_keys("k", &lines.join("\n")).unwrap().keys;
    TargetRequest {
        target: target.parse().unwrap(),
        format: KernelFileFormat::Kdb,
        toolchain: ToolchainId(0),
        keys: keys.into_iter().map(|key| (Arc::new(key), SourceId(0))).collect(),
    }
}

fn collector(requests: Vec<TargetRequest>) -> InputCollector {
    InputCollector { requests, has_input: true, ..InputCollector::default() }
}

/// What libMIOpen asks for depends on the compute units.
#[test]
fn what_a_device_wide_kdb_holds_is_in_exact_ones_of_the_same_run_too() {
    let requests = vec![
        request("gfx906_60", &[" -DA", " -DB"]),
        request("gfx906", &[" -DB", " -DC"]),
        request("gfx906_64", &[" -DD"]),
        request("gfx906:xnack+@60", &[" -DE"]),
        request("gfx900", &[" -DF"]),
    ];
    let finished = collector(requests).finish(&InputOptions::default(), None, false);
    let (requests, _) = finished.unwrap();
    let options = requests.iter().map(|request| {
        let keys = request.keys.iter();
        keys.map(|(key, _)| key.options().trim_start()).collect::<Vec<_>>().join(" ")
    });
    assert!(options.eq(["-DA -DB -DC", "-DB -DC", "-DD -DB -DC", "-DE", "-DF"]));
}

#[test]
fn asked_keys_that_a_licence_forbids_are_reported_as_missing() {
    let mut collector = collector(Vec::new());
    let key = |source: &str| KernelKey {
        kernel_name: format!("{source}.o"),
        kernel_args: " -mcpu=gfx906".to_owned(),
    };
    for (source, license) in [("free.cl", "MIT"), ("other.cl", "Proprietary")] {
        let license = SourceLicense { license: license.to_owned(), copyright: String::new() };
        collector.inputs.library.licenses.insert(source.to_owned(), [license].into());
        let absent = Absent::new(&key(source), Reason::NoSource, "");
        collector.inputs.absent.add(&"gfx906".parse().unwrap(), absent);
    }
    let license_allow = vec!["MIT".parse().unwrap()];
    let inputs = InputOptions { license_allow, ..InputOptions::default() };
    collector.leave_out(&inputs, None).unwrap();
    let absent = &collector.inputs.absent;
    assert!(absent.left_out().into_keys().eq(["other.cl"]));
    assert_eq!(absent.without_source(), [&key("other.cl")].into());
    let missing = absent.all().filter(|(_, one)| one.reason.is_missing()).map(|(_, one)| &one.key);
    assert_eq!(missing.collect::<Vec<_>>(), [&key("free.cl")]);
}

#[test]
fn a_count_from_a_data_sheet_is_halved_for_rdna_alone() {
    let of = |target: &str| unknown_count(&target.parse().unwrap()).unwrap_or_default();
    let rdna = of("gfx1100@96");
    assert!(rdna.contains("gfx110060.kdb") && rdna.ends_with("say gfx1100@48"), "{rdna}");
    assert_eq!(of("gfx1100@48"), "");
    assert!(of("gfx906@120").ends_with("may be of no use"), "{}", of("gfx906@120"));
}
