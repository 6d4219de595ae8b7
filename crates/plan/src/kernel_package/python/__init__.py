"""Precompiled GPU kernels for the MIOpen that a ROCm build of torch brings.

`python -m` with the name of this package says whether torch finds them.
"""

import os

#: The directory of the kernel databases.
DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "db")
