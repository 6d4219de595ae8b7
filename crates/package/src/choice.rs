//! Which one package is installed for each device.

use std::collections::BTreeMap;

/// For each device, the first of its packages that there is; `None` where
/// there is none. `devices` has the names for each, the preferred first.
///
/// One package serves a device: MIOpen opens one kdb for it, so a second would
/// take up space, and could keep it from a larger one. Each name is asked for
/// once, however many devices have it.
///
/// Source: ROCm/MIOpen 2d1fd997a, `GetDb` in binary_cache.cpp.
///
/// # Errors
/// What `exists` fails with.
pub fn one_for_each<E>(
    devices: &[Vec<String>],
    mut exists: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Vec<Option<String>>, E> {
    let mut known: BTreeMap<&str, bool> = BTreeMap::new();
    let mut chosen = Vec::with_capacity(devices.len());
    for names in devices {
        let mut first = None;
        for name in names {
            let there = match known.get(name.as_str()) {
                Some(there) => *there,
                None => {
                    let there = exists(name)?;
                    known.insert(name, there);
                    there
                }
            };
            if there {
                first = Some(name.clone());
                break;
            }
        }
        chosen.push(first);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_gets_the_exact_package_or_else_the_device_wide_one() {
        let devices = [["a-60", "a"], ["a-64", "a"], ["a-60", "a"], ["b-40", "b"]]
            .map(|names| names.map(str::to_owned).to_vec());
        let mut asked = Vec::new();
        let chosen = one_for_each(&devices, |name| {
            asked.push(name.to_owned());
            Ok::<_, ()>(["a", "a-60"].contains(&name))
        });
        let names = ["a-60", "a", "a-60"].map(|name| Some(name.to_owned()));
        assert_eq!(chosen.unwrap(), [&names[..], &[None]].concat());
        assert_eq!(asked, ["a-60", "a-64", "a", "b-40", "b"]);
        assert_eq!(one_for_each(&devices, |_| Err("broken")), Err("broken"));
    }
}
