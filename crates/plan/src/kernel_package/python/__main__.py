"""Says whether torch finds these kernels."""

import sys

from . import DIRECTORY, _databases, _start

try:
    if DIRECTORY not in _start.DIRECTORIES:
        raise LookupError("Python did not read the .pth file beside the package")
    print("{}={}".format(_databases.VARIABLE, _databases.use(_start.DIRECTORIES[:])))
except (LookupError, OSError) as error:
    sys.exit("torch does not find the kernels in {}: {}".format(DIRECTORY, error))
