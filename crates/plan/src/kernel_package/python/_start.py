"""Python imports this when it starts, by way of the .pth file beside the package.

Nothing happens until a program imports torch. All packages of this kind share one list
of directories, so that it happens once.
"""

import sys

from . import DIRECTORY

#: The directories of all such packages, as long as torch is not imported.
DIRECTORIES = sys.__dict__.setdefault("_gfxpack_miopen_kernels", [])


class _BeforeTorch:
    """Is asked for every module, and acts when that is torch. Finds none itself."""

    def find_spec(self, name, path=None, target=None):
        if name == "torch" and DIRECTORIES:
            directories = DIRECTORIES[:]
            DIRECTORIES.clear()
            try:
                from . import _databases

                _databases.use(directories)
            except Exception:
                # Kernels that are not found are compiled. No program may fail over that.
                pass
        return None


def start():
    """Is called by the .pth file."""
    if sys.platform == "linux":
        DIRECTORIES.append(DIRECTORY)
        if len(DIRECTORIES) == 1:
            sys.meta_path.insert(0, _BeforeTorch())
