//! Tests of what inputs come to.

use gfxpack_plan::key_list::parse_keys;
use serde_json::json;

use super::*;

fn request(target: &str, options: &str) -> TargetRequest {
    let line = format!(r#"{{"kernel_name":"a.cl.o","kernel_args":"{options} -mcpu=gfx906"}}"#);
    let keys = parse_keys("k", &line).unwrap().keys;
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
    let collector = collector(vec![request("gfx906_60", " -DA"), request("gfx906", " -DB")]);
    let read = collector.finish(&InputOptions::default()).unwrap();
    let keys = read.requests.iter().map(|request| {
        let keys = request.keys.iter().map(|(key, _)| key.options().to_owned());
        (request.target.kdb_file_name(), keys.collect::<Vec<_>>().concat())
    });
    let expected = [("gfx906_60.kdb", " -DA -DB"), ("gfx906.kdb", " -DB")];
    assert!(keys.eq(expected.map(|(name, keys)| (name.to_owned(), keys.to_owned()))));
}

#[test]
fn asked_keys_that_a_licence_forbids_are_reported_as_missing() {
    let mut collector = collector(Vec::new());
    let facts = json!({
        "version": "3.4.0", "origin": "installed", "sha256": "0".repeat(64), "uses": "search",
        "databases": [], "problems": [],
    });
    collector.inputs.library.miopen = Some(serde_json::from_value(facts).unwrap());
    let key = |source: &str| KernelKey {
        kernel_name: format!("{source}.o"),
        kernel_args: " -mcpu=gfx906".to_owned(),
    };
    for (source, license) in [("free.cl", "MIT"), ("other.cl", "Proprietary")] {
        let license = SourceLicense { license: license.to_owned(), copyright: String::new() };
        collector.inputs.library.licenses.insert(source.to_owned(), [license].into());
        let reason = Reason { no_source: true, text: String::new() };
        let unbuilt = Unbuilt { key: key(source), reason };
        collector.inputs.unbuildable.entry("gfx906".parse().unwrap()).or_default().push(unbuilt);
    }
    let license_allow = vec!["MIT".parse().unwrap()];
    let inputs = InputOptions { license_allow, ..InputOptions::default() };
    collector.leave_out(&inputs).unwrap();
    collector.describe_without_source();
    assert_eq!(collector.inputs.left_out.keys().collect::<Vec<_>>(), ["other.cl"]);
    assert_eq!(collector.inputs.library.miopen.unwrap().without_source, [key("other.cl")]);
    let stay: Vec<&KernelKey> =
        collector.inputs.unbuildable.values().flatten().map(|unbuilt| &unbuilt.key).collect();
    assert_eq!(stay, [&key("free.cl")]);
}

#[test]
fn a_count_from_a_data_sheet_is_halved_for_rdna_alone() {
    let of = |target: &str| unknown_count(&target.parse().unwrap()).unwrap_or_default();
    let rdna = of("gfx1100@96");
    assert!(rdna.contains("gfx110060.kdb") && rdna.ends_with("say gfx1100@48"), "{rdna}");
    assert_eq!(of("gfx1100@48"), "");
    assert!(of("gfx906@120").ends_with("may be of no use"), "{}", of("gfx906@120"));
}
