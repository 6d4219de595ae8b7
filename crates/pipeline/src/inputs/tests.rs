//! Tests of what inputs come to.

use gfxpack_plan::expand::parse_keys;

use super::*;

fn request(target: &str, options: &str) -> TargetRequest {
    let line = format!(r#"{{"kernel_name":"a.cl.o","kernel_args":"{options} -mcpu=gfx906"}}"#);
    let keys = parse_keys("k", &line).unwrap().requests;
    TargetRequest {
        target: target.parse().unwrap(),
        format: StoreFormat::Kdb,
        toolchain: ToolchainId(0),
        keys: keys.into_iter().map(|key| (Arc::new(key), SourceId(0))).collect(),
    }
}

/// What libMIOpen asks for depends on the compute units.
#[test]
fn what_a_device_wide_kdb_holds_is_in_exact_ones_of_the_same_run_too() {
    let reader = Reader {
        own_sources: Vec::new(),
        requests: vec![request("gfx906_60", " -DA"), request("gfx906", " -DB")],
        sources: SourceSet::default(),
        library: Library::default(),
        generated: BTreeSet::new(),
        missing: Vec::new(),
        excluded: Excluded {
            present: Present::read(&[], 0).unwrap(),
            had: BTreeMap::new(),
            refused: SkipList::default(),
        },
        key_errors: Vec::new(),
        unbuildable: Unbuildable::new(),
        warnings: Vec::new(),
        files: 0,
        for_miopen: true,
        has_input: true,
        left_out_by_debian: LeftOut::new(),
    };
    let read = reader.finish(LeftOut::new(), false).unwrap();
    let keys = read.requests.iter().map(|request| {
        let keys = request.keys.iter().map(|(key, _)| key.options().to_owned());
        (request.target.kdb_file_name(), keys.collect::<Vec<_>>().concat())
    });
    let expected = [("gfx906_60.kdb", " -DA -DB"), ("gfx906.kdb", " -DB")];
    assert!(keys.eq(expected.map(|(name, keys)| (name.to_owned(), keys.to_owned()))));
}
