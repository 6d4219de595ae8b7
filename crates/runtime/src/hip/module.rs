//! Loads code objects into the device, for kernel launches.

use std::ffi::{CString, c_void};
use std::ptr::NonNull;

use gfxpack_model::code_object::{self, CodeObjectError};

use super::error::HipError;
use super::runtime::Hip;

/// A loaded module: `hipModule_t`. Dropping it unloads it, so it must live as
/// long as its kernels run.
#[derive(Debug)]
pub struct Module {
    hip: Hip,
    handle: NonNull<c_void>,
}

impl Hip {
    /// Loads a code object, an ELF file or an offload bundle, into the
    /// current device: `hipModuleLoadData`.
    ///
    /// # Errors
    /// [`HipError::CodeObject`] if the bytes are not a code object or are
    /// truncated: HIP gets no length, and trusts the sizes in the headers.
    /// [`HipError::Call`] if HIP rejects them.
    pub fn load_module(&self, code_object: &[u8]) -> Result<Module, HipError> {
        match code_object::targets(code_object) {
            // HIP knows processors that are newer than our table.
            Ok(_) | Err(CodeObjectError::Processor(_)) => {}
            Err(error) => return Err(HipError::CodeObject(error)),
        }
        if !tables_fit(code_object) {
            return Err(HipError::CodeObject(CodeObjectError::Truncated("ELF file")));
        }
        let mut handle: *mut c_void = std::ptr::null_mut();
        // SAFETY: the function writes a handle to the first pointer, which is a live variable's,
        // and reads an image whose headers keep to `code_object`, as was just checked; the sizes of
        // what an offload bundle holds are those of its header.
        let code =
            unsafe { (self.functions.load_data)(&raw mut handle, code_object.as_ptr().cast()) };
        self.check("hipModuleLoadData", code)?;
        let handle = NonNull::new(handle)
            .ok_or_else(|| self.nonsense("hipModuleLoadData", "a null module".to_owned()))?;
        Ok(Module { hip: self.clone(), handle })
    }
}

impl Module {
    /// `hipModule_t`, for HIP's own calls. Valid as long as `self` lives.
    pub fn as_raw(&self) -> NonNull<c_void> {
        self.handle
    }

    /// A kernel of the module: `hipFunction_t`, for `hipModuleLaunchKernel`.
    /// Valid as long as `self` lives.
    ///
    /// # Errors
    /// [`HipError::Call`] if the module has no kernel of that name.
    pub fn function(&self, name: &str) -> Result<NonNull<c_void>, HipError> {
        let c_name = CString::new(name).map_err(|_| HipError::KernelName(name.to_owned()))?;
        let mut function: *mut c_void = std::ptr::null_mut();
        // SAFETY: the function writes a handle to the first pointer, which is a live variable's;
        // the module is loaded while `self` lives, and the name ends with a NUL.
        let code = unsafe {
            (self.hip.functions.get_function)(
                &raw mut function,
                self.handle.as_ptr(),
                c_name.as_ptr(),
            )
        };
        self.hip.check("hipModuleGetFunction", code)?;
        NonNull::new(function)
            .ok_or_else(|| self.hip.nonsense("hipModuleGetFunction", "a null kernel".to_owned()))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the handle came from hipModuleLoadData and is unloaded once, here.
        let code = unsafe { (self.hip.functions.unload)(self.handle.as_ptr()) };
        if code != 0 {
            tracing::debug!(code, "hipModuleUnload failed");
        }
    }
}

/// Whether the section and program headers of an ELF file lie within it; HIP
/// computes its size from them. True if it is not an ELF file.
fn tables_fit(bytes: &[u8]) -> bool {
    if !bytes.starts_with(b"\x7fELF") {
        return true;
    }
    let number = |at: usize, size: usize| {
        let mut number = [0; 8];
        number[..size].copy_from_slice(&bytes[at..at + size]);
        u64::from_le_bytes(number)
    };
    // ELF64: e_phoff, e_phentsize, e_phnum; e_shoff, e_shentsize, e_shnum.
    bytes.len() >= 64
        && [(32, 54, 56), (40, 58, 60)].iter().all(|&(offset, size, count)| {
            (number(size, 2) * number(count, 2))
                .checked_add(number(offset, 8))
                .is_some_and(|end| end <= bytes.len() as u64)
        })
}
