#!/bin/sh
# Compares the C interface with interface.xml: which functions there are, and the types of what they
# take and return. With --write, writes that file anew.
#
# It is the interface that the header declares: what a C compiler makes of the header, with functions
# that do nothing. libabigail knows no Rust. Tests hold the library to the header.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One declaration a line; each function gets a body.
"${CC:-cc}" -E -P "$here/include/gfxpack_runtime.h" | tr '\n' ' ' | sed 's/;/;\n/g' |
    sed '/^ *typedef/!s/\(gfxpack_[a-z_]*(.*)\);$/\1 { __builtin_trap(); }/' > "$work/interface.c"
"${CC:-cc}" -g -fno-eliminate-unused-debug-types -w -shared -fPIC -ffile-prefix-map="$work=" -o "$work/interface.so" \
    -Wl,-soname,libgfxpack_runtime.so.0 -Wl,--version-script="$here/gfxpack_runtime.map" \
    -Wl,--no-undefined-version "$work/interface.c"

command -v abidw > /dev/null || {
    echo "interface.sh: abidw is missing: install abigail-tools (libabigail on Fedora)" >&2
    exit 1
}
now=$work/interface.xml
abidw --load-all-types --no-corpus-path --no-comp-dir-path --no-show-locs --type-id-style hash \
    --out-file "$now" "$work/interface.so"

if [ "${1-}" = --write ]; then
    cp "$now" "$here/interface.xml"
    exit
fi
status=0
abidiff --non-reachable-types --no-architecture "$here/interface.xml" "$now" || status=$?
# Other bits say that abidiff itself failed, and it says why.
if [ $((status & 12)) -ne 0 ]; then
    echo "interface.sh: the C interface changed: if that is meant, run it with --write, and say in" \
        "CHANGELOG.md what programs have to do; unless only functions were added, raise the soname" >&2
fi
exit "$status"
