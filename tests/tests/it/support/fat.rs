//! Device code as compilers lay it out, with other bytes for the code.

/// An offload bundle for these GPUs.
pub(crate) fn bundle(gpus: &[&str]) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((gpus.len() as u64).to_le_bytes());
    for (index, gpu) in (1..).zip(gpus) {
        let id = format!("hipv4-amdgcn-amd-amdhsa--{gpu}");
        for number in [4096 * index, 4096, id.len() as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(id.as_bytes());
    }
    bytes.resize(4096, 0);
    for gpu in gpus {
        bytes.extend(gpu.as_bytes().iter().cycle().take(4096));
    }
    bytes
}
