//! The result of a lookup: the kernel and where it came from, or why there is
//! none.
#![expect(unsafe_code, reason = "exports functions that take handles")]

use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr::null;

use gfxpack_runtime::{CodeObject, Kernel, Origin, in_full};

use crate::boundary::take_back;
use crate::layer::Layer;
use crate::miss::Miss;
use crate::text::{c_path, c_text, pointer};

/// The result of a lookup.
///
/// The caller owns it and frees it with gfxpack_lookup_free(). All that it
/// returns belongs to it and is valid until then, even if the cache is freed
/// earlier. It never changes: any number of threads may use it, and the last
/// one frees it.
#[derive(Debug)]
pub struct Lookup {
    layer: Layer,
    file: Option<CString>,
    pub(crate) code_object: Option<CodeObject>,
    not_stored: Option<CString>,
    misses: Vec<Miss>,
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Lookup>();
};

impl Lookup {
    fn new(layer: Layer, file: Option<&Path>, misses: Vec<gfxpack_runtime::Miss>) -> Self {
        let misses = misses.into_iter().map(Miss::from).collect();
        let file = file.map(c_path);
        Self { layer, file, code_object: None, not_stored: None, misses }
    }
}

impl From<gfxpack_runtime::Lookup> for Lookup {
    fn from(lookup: gfxpack_runtime::Lookup) -> Self {
        match lookup.found {
            None => Self::new(Layer::None, None, lookup.misses),
            Some(found) => Self {
                code_object: Some(found.code_object),
                ..Self::new(found.layer.into(), found.file.as_deref(), lookup.misses)
            },
        }
    }
}

impl From<Kernel> for Lookup {
    fn from(kernel: Kernel) -> Self {
        let (layer, file) = match &kernel.origin {
            Origin::Memory => (Layer::Memory, None),
            Origin::System(file) => (Layer::System, Some(file.as_path())),
            Origin::User(file) => (Layer::User, Some(file.as_path())),
            Origin::Compiled => (Layer::Compiled, None),
            _ => (Layer::None, None),
        };
        Self {
            code_object: Some(kernel.code_object),
            not_stored: kernel.not_stored.map(|error| c_text(in_full(&error))),
            ..Self::new(layer, file, kernel.misses)
        }
    }
}

/// Frees a lookup and all that it returned. Null is allowed. Any thread may
/// call this, once no other uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_free(lookup: *mut Lookup) {
    // SAFETY: null or a handle that is not used again, as the documentation requires.
    unsafe { take_back(lookup) }
}

/// The kernel's bytes, for hipModuleLoadData(); null if there is none.
///
/// `size` receives their number, unless it is null. They have been checked: MD5
/// and gfx target. Owned by the lookup; must not be written to. Any thread may
/// call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_data(lookup: *const Lookup, size: *mut usize) -> *const u8 {
    // SAFETY: null or a live handle, as the documentation requires.
    let bytes = unsafe { lookup.as_ref() }.and_then(|it| it.code_object.as_deref());
    if !size.is_null() {
        // SAFETY: not null, so it may be written to, as the documentation requires; it need not be
        // initialised.
        unsafe { size.write(bytes.map_or(0, <[u8]>::len)) };
    }
    bytes.map_or(null(), <[u8]>::as_ptr)
}

/// Where the kernel came from; GFXPACK_LAYER_NONE for a miss or null. Any
/// thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_layer(lookup: *const Lookup) -> Layer {
    // SAFETY: null or a live handle, as the documentation requires.
    unsafe { lookup.as_ref() }.map_or(Layer::None, |it| it.layer)
}

/// The kdb that the kernel came from; null if it came from no file. Owned by
/// the lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_file(lookup: *const Lookup) -> *const c_char {
    // SAFETY: null or a live handle, as the documentation requires.
    pointer(unsafe { lookup.as_ref() }.and_then(|it| it.file.as_ref()))
}

/// Why a compiled kernel was not saved, in one line; null if it was saved, or
/// if there was nothing to save. The kernel itself is valid either way. Owned
/// by the lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_not_stored(lookup: *const Lookup) -> *const c_char {
    // SAFETY: null or a live handle, as the documentation requires.
    pointer(unsafe { lookup.as_ref() }.and_then(|it| it.not_stored.as_ref()))
}

/// Number of kdbs that were searched in vain; 0 for null. Any thread may call
/// this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_miss_count(lookup: *const Lookup) -> usize {
    // SAFETY: null or a live handle, as the documentation requires.
    unsafe { lookup.as_ref() }.map_or(0, |it| it.misses.len())
}

/// One of these misses, in the order of the search, counted from 0; null past
/// the last one. Owned by the lookup. Any thread may call this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gfxpack_lookup_miss(lookup: *const Lookup, index: usize) -> *const Miss {
    // SAFETY: null or a live handle, as the documentation requires.
    let miss = unsafe { lookup.as_ref() }.and_then(|it| it.misses.get(index));
    miss.map_or(null(), std::ptr::from_ref)
}
