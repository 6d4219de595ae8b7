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
