#!/bin/sh
# Writes gfxpack's manual pages and shell completions: share.sh PROGRAM DIR
set -eu
program=$1 out=$2
mkdir -p "$out"
"$program" manual "$out/man1"
"$program" completions bash > "$out/gfxpack"
"$program" completions zsh > "$out/_gfxpack"
"$program" completions fish > "$out/gfxpack.fish"
