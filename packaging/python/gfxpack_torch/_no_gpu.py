"""Runs programs that say `cuda` without a GPU: on the CPU, where torch computes nothing (fake
tensors) or really computes."""

import contextlib
import functools
import types

import torch
from torch.nn import Module, Parameter
from torch.overrides import TorchFunctionMode

# The operations that autocast runs in 16 bits on a GPU, as far as MIOpen computes them. The CPU's
# autocast has other lists in some versions.
# Source: pytorch/pytorch, aten/src/ATen/autocast_mode.h.
CONVOLUTIONS = {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                "conv_transpose3d", "convolution"}
RNNS = {"lstm": "lstm", "gru": "gru", "rnn_tanh": "tanh", "rnn_relu": "relu"}
# The CPU's autocast of some versions changes the type of these, the GPU's does not.
UNCHANGED = {"batch_norm", "instance_norm"}


def cpu(value):
    """The CPU in place of a GPU; other values as they are."""
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


def on_cpu(args, kwargs):
    kwargs = {name: cpu(value) for name, value in kwargs.items()}
    if isinstance(kwargs.get("device"), int):
        kwargs["device"] = "cpu"
    return tuple(cpu(value) for value in args), kwargs


def cast(value, dtype):
    """Floating tensors, alone and in lists, in another type."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(cast(one, dtype) for one in value)
    return value


NEW_AUTOCAST = hasattr(torch, "get_autocast_dtype")
if NEW_AUTOCAST:
    autocast_is_on = functools.partial(torch.is_autocast_enabled, "cpu")
    autocast_dtype = functools.partial(torch.get_autocast_dtype, "cpu")
    set_autocast_dtype = functools.partial(torch.set_autocast_dtype, "cpu")
else:
    autocast_is_on, autocast_dtype = torch.is_autocast_cpu_enabled, torch.get_autocast_cpu_dtype
    set_autocast_dtype = torch.set_autocast_cpu_dtype


def autocast_type():
    """The type of the autocast that is on, or None."""
    return autocast_dtype() if autocast_is_on() else None


class Functions(TorchFunctionMode):
    """What programs call, above autograd: devices become the CPU, recurrent networks and CTC losses
    are recorded, which PyTorch takes apart on the CPU."""

    def __init__(self, problems, values):
        super().__init__()
        self.problems, self.fake, self.values = problems, values.fake, values

    def __torch_function__(self, func, kinds, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is torch.device:
            return func(*args, **kwargs)
        if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if func is torch.Tensor.record_stream:
            return None
        if name == "to" and len(args) > 1 and type(args[1]) is int:
            args = (args[0], "cpu", *args[2:])
        if self.fake is not None and func in LOOKING:
            return self.values.of(func, *args)
        args, kwargs = on_cpu(args, kwargs)
        dtype = autocast_type()
        if dtype is not None and (name in CONVOLUTIONS or name in RNNS):
            args, kwargs = cast(args, dtype), {key: cast(kwargs[key], dtype) for key in kwargs}
        plain = dtype is not None and (name in CONVOLUTIONS or name in RNNS or name in UNCHANGED)
        with torch.autocast("cpu", enabled=False) if plain else contextlib.nullcontext():
            if name in CONVOLUTIONS and len(args) > 1:
                self.problems.layer(args[1], args[0].shape)
            elif name in RNNS and len(args) == 9:
                return self.rnn(RNNS[name], func, args)
            elif name == "ctc_loss" and len(args) >= 4:
                return self.ctc(func, args, kwargs)
            return func(*args, **kwargs)

    def rnn(self, mode, func, args):
        packed = isinstance(args[1], torch.Tensor) and isinstance(args[3], (list, tuple))
        if packed:
            x, batches, hx, params, bias, layers, dropout, training, both = args
            batches, batch_first = self.values.known(batches), False
        else:
            x, hx, params, bias, layers, dropout, training, both, batch_first = args
            batches = None
        first = hx[0] if isinstance(hx, (list, tuple)) else hx
        if packed and batches is None:
            self.problems.refuse("a packed sequence whose lengths are computed (use --compute)")
            return func(*args)
        record = functools.partial(
            self.problems.rnn, mode, x=x.detach(), batches=batches, hidden=first.shape[-1],
            params=params, layers=layers, bias=bias, bidirectional=both, dropout=dropout,
            batch_first=batch_first, training=training,
        )
        record(1)
        made = func(*args) if self.fake is None else fake_rnn(x, hx, params, both)
        seen = []

        def backward(_gradient):
            if not seen:
                seen.append(True)
                record(2)
                if any(param.requires_grad for param in params):
                    record(4)

        for tensor in made:
            if tensor.requires_grad:
                tensor.register_hook(backward)
        return made

    def ctc(self, func, args, kwargs):
        scores, targets, inputs, labels = args[:4]
        blank = kwargs.get("blank", args[4] if len(args) > 4 else 0)
        reduction = kwargs.get("reduction", args[5] if len(args) > 5 else 1)
        self.problems.ctc(scores, targets, self.values.known(inputs), self.values.known(labels),
                          blank)
        if self.fake is None:
            return func(*args, **kwargs)
        losses = scores.sum(dim=(0, 2)) if scores.dim() == 3 else scores.sum()
        return losses if reduction == 0 else losses.sum()


def fake_rnn(x, hx, params, both):
    """The outputs of a recurrent network as to their shapes. PyTorch takes it apart into steps,
    of which there may be thousands."""
    states = hx if isinstance(hx, (list, tuple)) else [hx]
    features = states[0].shape[-1] * (2 if both else 1)
    depends = x.sum() + sum(param.sum() for param in params) + sum(one.sum() for one in states)
    output = x.new_zeros((*x.shape[:-1], features)) + depends
    return (output, *(torch.zeros_like(one) + depends for one in states))


# What looks at all values of a tensor, passing the dispatcher by.
LOOKING = (torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__, torch.Tensor.__format__)


class Values:
    """Values of tensors that nothing computed."""

    def __init__(self):
        self.fake = None
        self.made_up = 0

    def scalar(self, dtype):
        self.made_up += 1
        return False if dtype == torch.bool else 1.0 if dtype.is_floating_point else 1

    def known(self, lengths):
        """A list of numbers, or None where the tensor has none."""
        if not isinstance(lengths, torch.Tensor):
            return [int(length) for length in lengths]
        if self.fake is None or not is_fake(lengths):
            return [int(length) for length in lengths.reshape(-1).tolist()]
        constant = getattr(lengths, "constant", None)
        return None if constant is None else constant.reshape(-1).tolist()

    def of(self, func, tensor, *args):
        if not is_fake(tensor):
            return func(tensor, *args)
        if func is torch.Tensor.__format__:
            return format(self.scalar(tensor.dtype), *args) if tensor.dim() == 0 else str(tensor)
        if func is not torch.Tensor.tolist:
            import numpy

            of_type = str(tensor.dtype).replace("torch.", "").replace("bfloat16", "float32")
            self.made_up += 1
            return numpy.ones(tuple(tensor.shape), dtype=of_type)

        def nested(shape):
            return [nested(shape[1:]) for _ in range(shape[0])] if shape else value

        value = self.scalar(tensor.dtype)
        return nested(tuple(tensor.shape))


def is_fake(tensor):
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(tensor, FakeTensor)


class Nothing:
    """An object of the GPU that does nothing: a stream, an event."""

    def __init__(self, *_args, **_kwargs):
        pass

    def __getattr__(self, _name):
        return lambda *_args, **_kwargs: 1.0

    def is_capturing(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return None


def replacements(problems, fake):
    """Attributes of torch, and what stands in their place without a GPU."""
    gpu = types.SimpleNamespace(
        name="GPU", major=9, minor=0, total_memory=64 << 30, multi_processor_count=104,
        gcnArchName="gfx90a", warp_size=64,
    )
    answers = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "get_device_name": gpu.name, "get_device_properties": gpu, "get_device_capability": (9, 0),
        "is_bf16_supported": True, "mem_get_info": (gpu.total_memory, gpu.total_memory),
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0,
        "max_memory_reserved": 0, "memory_stats": {}, "memory_summary": "", "utilization": 0,
        "current_stream": Nothing(), "default_stream": Nothing(), "stream": Nothing(),
        "get_arch_list": ["gfx90a"], "is_current_stream_capturing": False,
    }
    for name in ("init", "_lazy_init", "set_device", "synchronize", "empty_cache", "manual_seed",
                 "manual_seed_all", "reset_peak_memory_stats", "reset_max_memory_allocated",
                 "set_stream", "ipc_collect", "set_per_process_memory_fraction"):
        answers[name] = None
    answers.update(current_device_index=0, set_device_index=None,
                   current_accelerator=torch.device("cuda"))
    for owner in (torch.cuda, getattr(torch, "accelerator", torch.cuda)):
        for name, answer in answers.items():
            yield owner, name, lambda *_args, _answer=answer, **_kwargs: _answer
    for name in ("Stream", "Event", "device", "device_of"):
        yield torch.cuda, name, Nothing
    for name in ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Byte", "Bool"):
        yield torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor")

    convert = torch._C._nn._parse_to

    def parse_to(*args, **kwargs):
        if args and type(args[0]) is int:
            args = ("cpu", *args[1:])
        args, kwargs = on_cpu(args, kwargs)
        return convert(*args, **kwargs)

    yield torch._C._nn, "_parse_to", parse_to
    yield Module, "_apply", apply
    yield torch.nn.DataParallel, "__init__", alone
    yield torch, "Generator", type("Generator", (torch.Generator,), {
        "__new__": lambda cls, device="cpu": torch._C.Generator.__new__(cls, cpu(device)),
    })
    with contextlib.suppress(ImportError):
        from torch.utils._device import DeviceContext

        begin = DeviceContext.__init__
        yield DeviceContext, "__init__", lambda self, device: begin(self, cpu(torch.device(device)))
    yield torch, "compile", lambda model=None, **_kwargs: model or (lambda model: model)
    yield from autocasts(problems)
    yield from loaders()
    load = torch.load

    def load_to_cpu(*args, **kwargs):
        kwargs["map_location"] = "cpu"
        with really():
            return load(args[0], *args[2:], **kwargs)

    yield torch, "load", load_to_cpu
    if fake is not None:
        yield torch.Tensor, "__deepcopy__", copied
        # What nothing computed is no checkpoint.
        yield torch, "save", lambda *_args, **_kwargs: None
        for name, init in vars(torch.nn.init).items():
            if name.endswith("_") and not name.startswith("_") and callable(init):
                yield torch.nn.init, name, lambda tensor, *_args, **_kwargs: tensor


def can_be_half():
    """Whether the CPU's autocast knows fp16."""
    before = autocast_dtype()
    try:
        set_autocast_dtype(torch.float16)
    except RuntimeError:
        return False
    set_autocast_dtype(before)
    return True


def autocasts(problems):
    """Autocast of the GPU becomes the CPU's, in the same type."""
    start = torch.autocast.__init__

    def init(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
        # In some versions, the CPU's refuses other types.
        start(self, "cpu", torch.bfloat16, enabled, cache_enabled)
        is_gpu = cpu(device_type) != device_type
        wanted = dtype or (torch.float16 if is_gpu else torch.bfloat16)
        if wanted == torch.float16 and not can_be_half():
            wanted, problems.bf16_is_fp16 = torch.bfloat16, True
        self.fast_dtype = wanted

    yield torch.autocast, "__init__", init
    yield torch, "is_autocast_enabled", lambda *_args: autocast_is_on()
    yield torch, "get_autocast_gpu_dtype", lambda: autocast_type() or torch.float16
    if NEW_AUTOCAST:
        yield torch, "get_autocast_dtype", lambda device: (
            autocast_dtype() if cpu(device) == device else autocast_type() or torch.float16
        )
    places = [torch.cuda.amp.grad_scaler, getattr(getattr(torch, "amp", None), "grad_scaler", None)]
    for place in places:
        scaler = getattr(place, "GradScaler", None)
        if scaler is not None and "__init__" in vars(scaler):
            yield scaler, "__init__", disabled(scaler.__init__)


def disabled(start):
    """A gradient scaler that does nothing: what it would look at is not computed."""

    def init(self, *_args, **_kwargs):
        start(self, enabled=False)

    return init


def loaders():
    """Data is loaded by the program itself; the order of the samples is really drawn."""
    data = torch.utils.data
    load = data.DataLoader.__init__

    @functools.wraps(load)
    def init(self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None,
             num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, *_args, **kwargs):
        for name in ("timeout", "multiprocessing_context", "prefetch_factor", "persistent_workers",
                     "pin_memory_device"):
            kwargs.pop(name, None)
        load(self, dataset, batch_size, shuffle, sampler, batch_sampler, 0, collate_fn, False,
             drop_last, **kwargs)

    yield data.DataLoader, "__init__", init
    samplers = [one for one in vars(data).values()
                if isinstance(one, type) and issubclass(one, data.Sampler)]
    for sampler in samplers:
        if "__iter__" in vars(sampler) and sampler is not data.BatchSampler:
            yield sampler, "__iter__", drawn(sampler.__iter__)
    yield data, "random_split", really_called(data.random_split)
    base = data.dataloader._BaseDataLoaderIter
    yield base, "__init__", really_called(base.__init__)


def drawn(iterate):
    def really_iterate(self):
        with really():
            order = list(iterate(self))
        return iter(order)

    return really_iterate


def really_called(func):
    @functools.wraps(func)
    def call(*args, **kwargs):
        with really():
            return func(*args, **kwargs)

    return call


@contextlib.contextmanager
def really():
    """Within, tensors are computed and not recorded."""
    guards = [torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction()]
    with contextlib.ExitStack() as stack:
        # In older versions, the guards hold as long as they exist.
        for guard in guards:
            if hasattr(guard, "__enter__"):
                stack.enter_context(guard)
        try:
            yield
        finally:
            guards.clear()
            guard = None


def alone(self, module, *_args, **_kwargs):
    """`DataParallel` on no GPU, which runs the module as it is."""
    Module.__init__(self)
    self.module, self.device_ids = module, []


def copied(self, memo):
    """A copy of a tensor that has no memory."""
    if id(self) not in memo:
        new = self.detach().clone()
        is_parameter = isinstance(self, Parameter)
        memo[id(self)] = Parameter(new, self.requires_grad) if is_parameter else new
    return memo[id(self)]


def apply(self, fn, recurse=True):
    """`Module._apply` that gives a module its tensors in another type, and moves nothing."""
    for child in self.children() if recurse else ():
        child._apply(fn)
    for name, old in list(self._parameters.items()):
        if old is not None:
            new = changed(old, fn)
            if new is not old:
                self._parameters[name] = Parameter(new, old.requires_grad)
    for name, old in list(self._buffers.items()):
        if old is not None:
            self._buffers[name] = changed(old, fn)
    return self


def changed(old, fn):
    with torch.no_grad():
        new = fn(old)
    is_same = new.dtype == old.dtype and new.shape == old.shape and new.stride() == old.stride()
    return old if is_same else new
