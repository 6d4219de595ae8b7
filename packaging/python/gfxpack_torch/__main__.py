"""`python -m gfxpack_torch [-o FILE] [--compute] SCRIPT ARGS` or `… -m MODULE ARGS`."""

import argparse
import os
import runpy
import sys

parser = argparse.ArgumentParser(prog="python -m gfxpack_torch", description=__doc__)
parser.add_argument("-o", "--out", default="problems.txt", metavar="FILE",
                    help="where to write the problems [default: problems.txt]")
parser.add_argument("--compute", action="store_true",
                    help="compute on the CPU, for programs that look at values")
parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module")
parser.add_argument("script", metavar="SCRIPT")
parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS")
arguments = parser.parse_args()

from . import record_program  # noqa: E402, after the arguments, since torch takes a while

open(arguments.out, "w").close()
record_program(os.path.abspath(arguments.out), arguments.compute)
sys.argv = [arguments.script, *arguments.args]
if arguments.module:
    sys.path.insert(0, os.getcwd())
    runpy.run_module(arguments.script, run_name="__main__", alter_sys=True)
else:
    sys.path[0] = os.path.dirname(os.path.abspath(arguments.script))
    runpy.run_path(arguments.script, run_name="__main__")
