//! Adds the keys of device-wide kdbs to kdbs for exact compute units.

use std::collections::HashSet;
use std::sync::Arc;

use gfxpack_model::KernelKey;

use crate::plan::TargetRequest;

/// Adds the keys of each device-wide target to the targets for exact compute units of the same
/// devices. If an exact kdb is installed, MIOpen does not open the device-wide one, and would miss
/// kernels that are only there.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
pub fn add_to_exact(requests: &mut [TargetRequest]) {
    for wide in 0..requests.len() {
        if requests[wide].target.compute_units().is_some() {
            continue;
        }
        let (db_id, keys) = (requests[wide].target.id().db_id(), requests[wide].keys.clone());
        for exact in requests.iter_mut() {
            if exact.target.compute_units().is_none() || exact.target.id().db_id() != db_id {
                continue;
            }
            let own: HashSet<Arc<KernelKey>> =
                exact.keys.iter().map(|(key, _)| Arc::clone(&key.key)).collect();
            let missing = keys.iter().filter(|(key, _)| !own.contains(&key.key));
            exact.keys.extend(missing.cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use gfxpack_model::{SourceId, ToolchainId};

    use super::*;
    use crate::key_list::parse_keys;

    fn request(target: &str, options: &[&str]) -> TargetRequest {
        let line = |options: &&str| {
            format!(r#"{{"kernel_name":"a.cl.o","kernel_args":"{options} -mcpu=gfx906"}}"#)
        };
        let lines: Vec<String> = options.iter().map(line).collect();
        let keys = parse_keys("k", &lines.join("\n")).unwrap().keys;
        TargetRequest {
            target: target.parse().unwrap(),
            format: gfxpack_model::KernelFileFormat::Kdb,
            toolchain: ToolchainId(0),
            keys: keys.into_iter().map(|key| (Arc::new(key), SourceId(0))).collect(),
        }
    }

    #[test]
    fn an_exact_kdb_has_the_device_wide_keys_and_its_own() {
        let mut requests = [
            request("gfx906_60", &[" -DA", " -DB"]),
            request("gfx906", &[" -DB", " -DC"]),
            request("gfx906_64", &[" -DD"]),
            request("gfx906:xnack+@60", &[" -DE"]),
            request("gfx900", &[" -DF"]),
        ];
        add_to_exact(&mut requests);
        let options = requests.each_ref().map(|request| {
            let keys = request.keys.iter();
            keys.map(|(key, _)| key.options().trim_start()).collect::<Vec<_>>().join(" ")
        });
        assert_eq!(options, ["-DA -DB -DC", "-DB -DC", "-DD -DB -DC", "-DE", "-DF"]);
    }
}
