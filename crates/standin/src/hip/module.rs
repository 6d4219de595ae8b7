//! Modules and their functions: the stand-in's objects have every function, real ones those of
//! their symbol table.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::BTreeSet;
use std::ptr;
use std::sync::Arc;

use super::error::{
    ERROR_FILE_NOT_FOUND, ERROR_INVALID_IMAGE, ERROR_NOT_FOUND, HipResult, SUCCESS,
};
use super::event::function_loaded;
use crate::code_object::{self, Image};
use crate::record::{Event, Key, record};
use crate::{give, sqlite, succeed};

/// A loaded object.
#[derive(Debug)]
struct Module {
    key: Option<Arc<Key>>,
    /// `None` if it has every function.
    functions: Option<BTreeSet<Vec<u8>>>,
}

impl Module {
    fn has(&self, name: &[u8]) -> bool {
        self.functions.as_ref().is_none_or(|functions| {
            functions.contains(name) || functions.contains(&[name, b".kd"].concat())
        })
    }
}

/// Loads an object from a kernel database, the stand-in's or a real one.
// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleLoadData(
    module: *mut *mut c_void,
    image: *const c_void,
) -> HipResult {
    // SAFETY: the caller passes a complete object, the stand-in's or a real one.
    let loaded = match unsafe { code_object::read(image.cast()) } {
        Image::StandIn(id) => Module { key: sqlite::answered(id), functions: None },
        Image::Real(functions) => Module { key: sqlite::last_found(), functions: Some(functions) },
        Image::Unknown => return ERROR_INVALID_IMAGE,
    };
    // SAFETY: the caller passes a place for the module.
    unsafe { module.write(Box::into_raw(Box::new(loaded)).cast()) };
    SUCCESS
}

/// No file could be loaded, since compilers write none.
// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
extern "C" fn hipModuleLoad(_module: *mut *mut c_void, _path: *const c_char) -> HipResult {
    ERROR_FILE_NOT_FOUND
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleUnload(module: *mut c_void) -> HipResult {
    if !module.is_null() {
        // SAFETY: the caller passes a module that was loaded above, and only once.
        drop(unsafe { Box::from_raw(module.cast::<Module>()) });
    }
    SUCCESS
}

// SAFETY: the name belongs to a library that this crate replaces.
#[unsafe(no_mangle)]
unsafe extern "C" fn hipModuleGetFunction(
    function: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> HipResult {
    // SAFETY: the caller passes a C string and a module that was loaded above.
    let (name, module) = unsafe { (CStr::from_ptr(name), &*module.cast::<Module>()) };
    let found = module.has(name.to_bytes());
    record(Event::Function { key: module.key.as_deref(), name: name.to_bytes(), found });
    // If the stand-in answers for missing kernels, it also does for missing functions.
    if !found && !sqlite::answers_missing() {
        return ERROR_NOT_FOUND;
    }
    function_loaded();
    // SAFETY: the caller passes a place for the function, which is never dereferenced.
    unsafe { function.write(ptr::dangling_mut()) };
    SUCCESS
}

// Nothing runs, but launches succeed, since libraries load further kernels between them.
succeed! {
    hipExtModuleLaunchKernel
    hipModuleLaunchCooperativeKernel
    hipModuleLaunchKernel
}

// One work group fits, whatever it needs.
give! {
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        groups: *mut c_int,
        _function: *mut c_void,
        _work_items: c_int,
        _shared_memory: usize
    ) { *groups = 1 }
}
