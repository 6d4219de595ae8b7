"""Records what a PyTorch program makes MIOpen compute, as MIOpenDriver's lines, on machines without
a GPU.

    with gfxpack_torch.record("problems.txt"):
        model(images)

`gfxpack ask` and `gfxpack dist` read the file. `python -m gfxpack_torch -o FILE train.py ARGS` runs
a whole program, `gfxpack problems -o FILE -- COMMAND` any command.
"""

import atexit
import contextlib
import fcntl
import re
import sys
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ._no_gpu import NEW_AUTOCAST, Functions, Values, cast, is_fake, really, replacements
from ._problems import CONVOLUTIONS, NORMS, Problems

__all__ = ["record"]


class record(contextlib.ContextDecorator):
    """Records the problems of what runs within, and writes them to `file`. As a decorator, those of
    all calls of the function.

    Nothing is computed: tensors have shapes and types, and no values. With `compute`, they are
    computed, by the CPU, or by the GPU where there is one; for programs that look at values.
    """

    def __init__(self, file, compute=False):
        self.file, self.compute = str(file), compute
        self.problems, self.values = Problems(self._append), Values()
        self._within = 0
        self._saved = None
        self._reports = True

    def __call__(self, func):
        self._reports = False
        atexit.register(self.report)
        return super().__call__(func)

    def __enter__(self):
        if self._within == 0:
            if self._saved is None:
                open(self.file, "w").close()
            self.start()
        self._within += 1
        return self

    def __exit__(self, *_error):
        self._within -= 1
        if self._within == 0:
            self._stack.close()
            self.write()
            if self._reports:
                self.report()

    def start(self):
        """Begins to record."""
        self._stack = contextlib.ExitStack()
        fake = self.values.fake = None if self.compute else fake_mode()
        if not (self.compute and torch.cuda.is_available()):
            for owner, name, new in list(replacements(self.problems, fake)):
                self._stack.enter_context(replaced(owner, name, new))
        if fake is not None:
            self._stack.enter_context(fake)
        self._stack.enter_context(Operations(self.problems, self.values))
        self._stack.enter_context(Functions(self.problems, self.values))

    def _append(self, line):
        """A program that is killed leaves the lines it had come to."""
        with open(self.file, "a") as file:
            file.write(f"MIOpenDriver {line}\n")

    def write(self):
        """Writes each line once, with its number of calls, together with what other processes
        wrote."""
        calls = self.problems.calls - (self._saved or Counter())
        self._saved = self.problems.calls.copy()
        if not calls:
            return
        with open(self.file, "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for line, number in LINE.findall(file.read()):
                calls[line] += int(number or 0)
            file.seek(0)
            file.truncate()
            for line, number in sorted(calls.items()):
                file.write(f"MIOpenDriver {line}" + (f" # calls: {number}\n" if number else "\n"))

    def report(self):
        """Says on stderr how much there is, and what can't be seen from the lines."""
        calls = self.problems.calls
        if calls or self.problems.unwritten:
            count = lambda number, what: f"{number} {what}" + "s" * (number != 1)
            say(f"{count(len(calls), 'problem')} in {count(sum(calls.values()), 'call')}")
        for note in self.problems.notes():
            say(note)
        if self.values.made_up:
            times = "time" if self.values.made_up == 1 else "times"
            say(
                f"the program looked {self.values.made_up} {times} at values that nothing computed, "
                "and got ones; if sizes depend on them, record with --compute"
            )


LINE = re.compile(r"^MIOpenDriver (.*?)(?: # calls: (\d+))?$", re.MULTILINE)


def say(text):
    print(f"gfxpack_torch: {text}", file=sys.stderr)


def fake_mode():
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        return FakeTensorMode(allow_non_fake_inputs=True)
    except TypeError:
        return FakeTensorMode(throw_on_data_dependent_ops=True)


@contextlib.contextmanager
def replaced(owner, name, new):
    """For a while, an attribute has another value, if it is there at all."""
    old = getattr(owner, name, None)
    own = name in vars(owner)
    if old is None:
        yield
        return
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old) if own else delattr(owner, name)


class Operations(TorchDispatchMode):
    """All operations, below autograd."""

    def __init__(self, problems, values):
        super().__init__()
        self.problems, self.fake, self.values = problems, values.fake, values

    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        kwargs = kwargs or {}
        # Newer operations do not exist in older versions, so they are known by name.
        library, _, name = str(getattr(func, "overloadpacket", func)).rpartition(".")
        if name in CONVOLUTIONS or name in NORMS:
            self.problems.operation(name, named(func, args, kwargs))
        if self.fake is None:
            return self._run(name, func, args, kwargs)
        if library == "profiler":
            with really():
                return func(*args, **kwargs)
        try:
            if "lift" not in name:  # which makes fake tensors of constants, and keeps their values
                args, kwargs = self._fake(args), self._fake(kwargs)
            return self._run(name, func, args, kwargs)
        except Exception as error:
            if type(error).__name__ != "DataDependentOutputException":
                raise
            if name == "equal":
                return self.values.scalar(torch.bool)
            if name != "_local_scalar_dense":
                raise
            return self.values.scalar(args[0].dtype)

    def _run(self, name, func, args, kwargs):
        is_lower = name in CONVOLUTIONS and args[0].dtype in (torch.float16, torch.bfloat16)
        if not is_lower or NEW_AUTOCAST:
            return func(*args, **kwargs)
        # The CPU of older versions lacks these, or has them with faults.
        made = func(*cast(args, torch.float32), **kwargs)
        return cast(made, args[0].dtype)

    def _fake(self, value):
        """Tensors from before recording, without their values."""
        if isinstance(value, torch.Tensor):
            return value if is_fake(value) else self.fake.from_tensor(value)
        if isinstance(value, (list, tuple)):
            return type(value)(self._fake(one) for one in value)
        if isinstance(value, dict):
            return {name: self._fake(one) for name, one in value.items()}
        return value


def named(func, args, kwargs):
    """The arguments by name."""
    wanted = func._schema.arguments
    values = {one.name: one.default_value for one in wanted if one.has_default_value()}
    values.update(zip((one.name for one in wanted), args))
    values.update(kwargs)
    # Some operations call it `self`.
    values.setdefault("input", values.get("self"))
    return values


def record_program(file, compute):
    """Records the rest of this program."""
    recording = record(file, compute)
    recording.start()
    show = sys.excepthook

    def failed(kind, error, trace):
        show(kind, error, trace)
        if not compute:
            say("hint: nothing was computed; --compute computes, for programs that look at values or "
                "load what they saved")

    sys.excepthook = failed
    atexit.register(recording.report)
    atexit.register(recording.write)
