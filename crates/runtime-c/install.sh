#!/bin/sh
# Links and installs the C library that `cargo build --release --package gfxpack-runtime-c` has
# compiled, under the names by which compilers and the loader look for it, with header, pkg-config
# and CMake files.
#
#   install.sh --built target/release [--destdir DIR] [--prefix /usr] [--libdir /usr/lib64]
#
# libgfxpack_runtime.so.<version> is the file, libgfxpack_runtime.so.0 (its soname) and
# libgfxpack_runtime.so are links to it. --libdir lies below --prefix. The C compiler is $CC, or cc;
# it is given $LDFLAGS and $LIBS: LIBS=-lamdhip64 for a library with the feature hip-sys.
set -eu

# The binary interface's number: raised when a program that was linked with an older library could
# no longer use a newer one.
soname=libgfxpack_runtime.so.0

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
    echo "install.sh: --built is missing: the directory with libgfxpack_runtime_c.a" >&2
    exit 2
fi
case $libdir in
    "$prefix"/?*) ;;
    *) echo "install.sh: --libdir $libdir does not lie below --prefix $prefix" >&2; exit 2 ;;
esac

# A test compares the header's version with the crate's.
number() { sed -n "s/^#define GFXPACK_VERSION_$1 //p" "$here/include/gfxpack_runtime.h"; }
major=$(number MAJOR) minor=$(number MINOR) patch=$(number PATCH)
version=$major.$minor.$patch

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
# cargo could link it too, but without versions of symbols: rustc passes a list of its own, without
# versions, and linkers take no second one.
# shellcheck disable=SC2086 # LDFLAGS and LIBS are words.
"${CC:-cc}" -shared -o "$lib/libgfxpack_runtime.so.$version" -Wl,-soname,"$soname" \
    -Wl,--version-script="$here/gfxpack_runtime.map" -Wl,--gc-sections -Wl,--strip-all \
    -Wl,-z,relro,-z,now -Wl,--no-undefined ${LDFLAGS:-} \
    -Wl,--whole-archive "$built/libgfxpack_runtime_c.a" -Wl,--no-whole-archive \
    ${LIBS:-} -lgcc_s -lpthread -ldl -lm -lc
ln -sf "libgfxpack_runtime.so.$version" "$lib/$soname"
ln -sf "$soname" "$lib/libgfxpack_runtime.so"
install -m 644 "$here/include/gfxpack_runtime.h" "$destdir$prefix/include/"
filled gfxpack-runtime.pc.in "$lib/pkgconfig/gfxpack-runtime.pc"
filled cmake/gfxpack-runtime-config.cmake.in "$cmake/gfxpack-runtime-config.cmake"
filled cmake/gfxpack-runtime-config-version.cmake.in "$cmake/gfxpack-runtime-config-version.cmake"
