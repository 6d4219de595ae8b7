"""Starts the recorder in a Python program that `gfxpack problems` runs, once it imports torch, and
runs the sitecustomize that this one hides."""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                from gfxpack_torch import record_program

                record_program(os.environ["GFXPACK_TORCH_FILE"],
                               os.environ.get("GFXPACK_TORCH_COMPUTE") == "1")

            spec.loader.exec_module = exec_module
        return spec


def run_hidden():
    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if "GFXPACK_TORCH_FILE" in os.environ:
    sys.meta_path.insert(0, Finder())
run_hidden()
