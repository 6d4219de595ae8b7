"""Makes MIOpen find its own databases and the kernels of these packages.

MIOpen looks for all of its databases in one directory: MIOPEN_SYSTEM_DB_PATH, or else
`../share/miopen/db` beside the library. A directory with nothing but these kernels would
take the performance and find databases away from it. So this makes one, in the user's
cache, with links to MIOpen's own databases and to these kernels. No file of torch is
changed, and none of its databases is replaced.
"""

import glob
import hashlib
import importlib.machinery
import os
import re
import shutil
import stat
import tempfile

VARIABLE = "MIOPEN_SYSTEM_DB_PATH"


def use(directories):
    """Sets the variable, unless the user did. Returns its value, or raises LookupError
    with the reason why it is not set."""
    cache = _cache()
    # A parent process may have set it, for another torch.
    if VARIABLE in os.environ:
        if os.path.dirname(os.environ[VARIABLE]) != cache:
            raise LookupError(VARIABLE + " is set already")
        del os.environ[VARIABLE]
    theirs = _files(_databases_of_torch())
    files = dict(theirs)
    for directory in directories:
        for name, path in _files(directory).items():
            if not _hides(name, theirs):
                files.setdefault(name, path)
    if len(files) == len(theirs):
        raise LookupError("torch has kernels of its own for these GPUs")
    os.environ[VARIABLE] = _linked(cache, files)
    return os.environ[VARIABLE]


def _cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "gfxpack", "miopen-databases")


def _files(directory):
    """The path of each file, by name."""
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    paths = {name: os.path.join(directory, name) for name in names}
    return {name: path for name, path in paths.items() if os.path.isfile(path)}


def _databases_of_torch():
    """Where torch's MIOpen looks for databases."""
    spec = importlib.machinery.PathFinder.find_spec("torch")
    if spec is None or not spec.submodule_search_locations:
        raise LookupError("torch is not installed")
    torch = os.path.realpath(spec.submodule_search_locations[0])
    beside = os.path.join(glob.escape(os.path.dirname(torch)), "_rocm_sdk_libraries*")
    found = [
        place
        for place in [torch] + sorted(glob.glob(beside))
        if glob.glob(os.path.join(glob.escape(place), "lib", "libMIOpen*.so*"))
    ]
    if len(found) != 1:
        raise LookupError("torch has {} libMIOpen, not one".format(len(found) or "no"))
    return os.path.join(found[0], "share", "miopen", "db")


def _hides(name, theirs):
    """Whether MIOpen would open this kdb, for one number of compute units, in place of
    torch's for any number. It opens only one of them."""
    stem, ending = os.path.splitext(name)
    wide = [other[:-4] for other in theirs if other.endswith(".kdb")]
    counts = "(_[0-9]+|[0-9a-f]+)"
    return ending == ".kdb" and any(re.fullmatch(re.escape(w) + counts, stem) for w in wide)


def _linked(cache, files):
    """A directory with links to these files. Its name says which, so nothing in it ever
    changes, and processes can share it."""
    os.makedirs(cache, mode=0o700, exist_ok=True)
    _own(cache)
    digest = hashlib.sha256(repr(sorted(files.items())).encode("utf-8", "surrogateescape"))
    path = os.path.join(cache, digest.hexdigest()[:32])
    if not os.path.isdir(path):
        _forget_removed(cache)
        new = tempfile.mkdtemp(prefix=".", dir=cache)
        try:
            for name, target in files.items():
                os.symlink(target, os.path.join(new, name))
            os.rename(new, path)
        except OSError:
            shutil.rmtree(new, ignore_errors=True)
            # Another process may have been faster.
            if not os.path.isdir(path):
                raise
    _own(path)
    if sorted(os.listdir(path)) != sorted(files):
        raise LookupError("links are missing in {}: remove it".format(path))
    return path


def _own(path):
    """What others may write to could make MIOpen load their code."""
    about = os.stat(path)
    if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise LookupError("others may write to " + path)


def _forget_removed(cache):
    """Removes directories of links whose files are gone: they were uninstalled."""
    for name in os.listdir(cache):
        directory = os.path.join(cache, name)
        links = [os.path.join(directory, link) for link in os.listdir(directory)]
        if links and not any(os.path.exists(link) for link in links):
            shutil.rmtree(directory, ignore_errors=True)
