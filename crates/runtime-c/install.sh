#!/bin/sh
# Installs the C library that `cargo build --release --package gfxpack-runtime-c` has made, under
# the names by which compilers and the loader look for it, with header, pkg-config and CMake files.
#
#   install.sh --built target/release [--destdir DIR] [--prefix /usr] [--libdir /usr/lib64]
#
# libgfxpack_runtime.so.<version> is the file, libgfxpack_runtime.so.0 (its soname) and
# libgfxpack_runtime.so are links to it. --libdir lies below --prefix.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
built= destdir= prefix=/usr/local libdir=
while [ $# -gt 0 ]; do
    case $1 in
        --built) built=$2 ;;
        --destdir) destdir=$2 ;;
        --prefix) prefix=$2 ;;
        --libdir) libdir=$2 ;;
        *) echo "install.sh: unknown argument: $1" >&2; exit 2 ;;
    esac
    shift 2
done
: "${libdir:=$prefix/lib}"
if [ -z "$built" ]; then
    echo "install.sh: --built is missing: the directory with libgfxpack_runtime_c.so" >&2
    exit 2
fi
case $libdir in
    "$prefix"/?*) ;;
    *) echo "install.sh: --libdir $libdir does not lie below --prefix $prefix" >&2; exit 2 ;;
esac

# The header is held against the crate's version by a test, the soname against build.rs.
number() { sed -n "s/^#define GFXPACK_VERSION_$1 //p" "$here/include/gfxpack_runtime.h"; }
major=$(number MAJOR) minor=$(number MINOR) patch=$(number PATCH)
version=$major.$minor.$patch
soname=$(sed -n 's/^const SONAME: &str = "\(.*\)";$/\1/p' "$here/build.rs")

# From libdir to prefix/include: up once for each directory of libdir below prefix.
up=$(printf '%s' "${libdir#"$prefix"/}" | sed 's,//*,/,g; s,/$,,; s,[^/][^/]*,..,g')

filled() {
    sed -e "s,@PREFIX@,$prefix,g" -e "s,@LIBDIR@,$libdir,g" -e "s,@VERSION@,$version,g" \
        -e "s,@MAJOR@,$major,g" -e "s,@MINOR@,$minor,g" -e "s,@SONAME@,$soname,g" \
        -e "s,@INCLUDE_FROM_LIB@,$up/include,g" "$here/$1" > "$2"
    chmod 644 "$2"
}

lib=$destdir$libdir
cmake=$lib/cmake/gfxpack-runtime
mkdir -p "$lib/pkgconfig" "$cmake" "$destdir$prefix/include"
install -m 755 "$built/libgfxpack_runtime_c.so" "$lib/libgfxpack_runtime.so.$version"
ln -sf "libgfxpack_runtime.so.$version" "$lib/$soname"
ln -sf "$soname" "$lib/libgfxpack_runtime.so"
install -m 644 "$here/include/gfxpack_runtime.h" "$destdir$prefix/include/"
filled gfxpack-runtime.pc.in "$lib/pkgconfig/gfxpack-runtime.pc"
filled cmake/gfxpack-runtime-config.cmake.in "$cmake/gfxpack-runtime-config.cmake"
filled cmake/gfxpack-runtime-config-version.cmake.in "$cmake/gfxpack-runtime-config-version.cmake"
