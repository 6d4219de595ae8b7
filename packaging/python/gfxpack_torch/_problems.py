"""Which problems PyTorch on ROCm hands to MIOpen, as MIOpenDriver's lines.

Source: pytorch/pytorch, aten/src/ATen/native: `use_miopen` in Convolution.cpp and RNN.cpp,
`_select_batch_norm_backend` in Normalization.cpp, miopen/LossCTC_miopen.cpp; ConvUtils.h for
layouts. Where versions differ, what any of them hands over is written.
"""

import os
import weakref
from collections import Counter

import torch

# `suffix` of MIOpenDriver's convolutions, batch normalizations and RNNs.
CONV = {torch.float32: "", torch.float16: "fp16", torch.bfloat16: "bfp16"}
NORM = {torch.float32: "", torch.float16: "fp16fp32", torch.bfloat16: "bfp16fp32"}
RNN = {torch.float32: "", torch.float16: "fp16"}
# Of these sizes of one layer on, a package can't hold the sizes still to come.
MANY_SHAPES = 16


class Problems:
    """The problems so far, and what could not be written."""

    def __init__(self, on_new=lambda line: None):
        self.calls = Counter()
        self.unwritten = Counter()
        self.shapes = {}
        self.both_layouts = False
        # Of an autocast to fp16 where the CPU knows bf16 alone.
        self.bf16_is_fp16 = False
        self._on_new = on_new

    def add(self, line):
        self.calls[line] += 1
        if self.calls[line] == 1:
            self._on_new(line)

    def refuse(self, what):
        self.unwritten[what] += 1

    def type_of(self, tensor):
        is_fp16 = self.bf16_is_fp16 and tensor.dtype == torch.bfloat16
        return torch.float16 if is_fp16 else tensor.dtype

    def operation(self, name, args):
        """Adds what an operation below autograd hands to MIOpen."""
        if not torch.backends.cudnn.enabled:
            return
        if name in CONVOLUTIONS:
            self._convolution(name, args)
        elif name in NORMS:
            self._norm(name, args)

    def layer(self, weight, shape):
        """Notes one shape of a layer's input. A layer is known by its weights."""
        kept, shapes = self.shapes.get(id(weight), (None, None))
        if kept is None or kept() is not weight:
            shapes = set()
            self.shapes[id(weight)] = (weakref.ref(weight), shapes)
        shapes.add(tuple(shape))

    def _layouts(self, is_last):
        """The layouts in which PyTorch may hand over tensors that are channels_last or not."""
        said = os.environ.get("PYTORCH_MIOPEN_SUGGEST_NHWC")
        if not is_last or said == "0":
            return [False]
        if said is None:
            self.both_layouts = True
            return [True, False]
        return [True]

    def _convolution(self, name, args):
        x, weight = args["input"], args["weight"]
        mask = args.get("output_mask")
        directions = [1]
        if mask is not None:
            directions = [bits for bits, wanted in ((2, mask[0]), (4, mask[1])) if wanted]
        transposed = bool(args.get("transposed", name == "miopen_convolution_transpose"))
        groups, dims = args["groups"], x.dim() - 2
        dtype = self.type_of(x)
        if dtype == torch.float64 or x.numel() == 0 or weight.numel() == 0:
            return
        if dtype not in CONV:
            return self.refuse(f"a convolution of {dtype}")
        if not 1 <= dims <= 3:
            return self.refuse(f"a convolution of {x.dim()} dimensions")

        def axes(values, first):
            """Depth, height and width; one value stands for all axes."""
            values = list(values) * (dims if len(values) == 1 else 1)
            return [first] * (3 - dims) + values

        size, filters = axes(x.shape[2:], 1), axes(weight.shape[2:], 1)
        pad, stride = axes(args["padding"], 0), axes(args["stride"], 1)
        dilation, more = axes(args["dilation"], 1), axes(args.get("output_padding") or [0], 0)
        if groups > 1 and any(value > 1 for value in dilation):
            return  # PyTorch computes these itself.
        in_channels = x.shape[1]
        out_channels = weight.shape[1] * groups if transposed else weight.shape[0]
        three = dims == 3
        if transposed and any(end >= step for end, step in zip(more, stride)):
            # MIOpenDriver has no such transposed convolution, but the plain one whose gradient it is.
            size = [
                (size[axis] - 1) * stride[axis] - 2 * pad[axis]
                + dilation[axis] * (filters[axis] - 1) + 1 + more[axis]
                for axis in range(3)
            ]
            in_channels, out_channels = out_channels, in_channels
            directions = [{1: 2, 2: 1, 4: 4}[bits] for bits in directions]
            transposed, more = False, [0] * 3

        def options(names, values):
            pairs = list(zip(names, values))[0 if three else 1 :]
            return "".join(f" {name} {value}" for name, value in pairs)

        line = f"conv{CONV[dtype]} -n {x.shape[0]} -c {in_channels}"
        line += options(["--in_d", "-H", "-W"], size) + f" -k {out_channels}"
        line += options(["--fil_d", "-y", "-x"], filters)
        line += options(["--pad_d", "-p", "-q"], pad)
        line += options(["--conv_stride_d", "-u", "-v"], stride)
        line += options(["--dilation_d", "-l", "-j"], dilation)
        if any(more):
            line += options(["--trans_output_pad_d", "-Y", "-X"], more)
        line += " --spatial_dim 3" if three else ""
        last = {4: channels_last_2d, 5: channels_last_3d}.get(x.dim(), lambda tensor: False)
        for is_last in self._layouts(last(x) or last(weight)):
            nhwc = "NDHWC" if three else "NHWC"
            layout = f" --in_layout {nhwc} --fil_layout {nhwc} --out_layout {nhwc}"
            mode = "trans" if transposed else "conv"
            for bits in directions:
                self.add(f"{line}{layout if is_last else ''} -m {mode} -g {groups} -F {bits}")

    def _norm(self, name, args):
        x, weight = args["input"], args["weight"]
        if weight is None or weight.dtype != torch.float32 or not 3 <= x.dim() <= 5:
            return  # PyTorch computes these itself.
        dtype = self.type_of(x)
        if dtype not in NORM or x.numel() == 0:
            return
        forward = not name.endswith("_backward")
        default = "no_training" not in name and "no_update" not in name
        training = args.get("training", args.get("train", args.get("update", default)))
        if forward and "bias" in args and args["bias"] is None or not (forward or training):
            return
        if not forward:
            way = "--forw 0 -b 1 -s 1"
        elif training:
            way = "--forw 1 -b 0 -s 1"
            way += " -r 1" if args.get("running_mean") is not None else ""
        else:
            way = "--forw 2 -b 0 -r 1"
        # PyTorch's descriptors have four axes at least.
        names = ["-D", "-H", "-W"] if x.dim() == 5 else ["-H", "-W"]
        sizes = (list(x.shape[2:]) + [1])[: len(names)]
        sizes = "".join(f" {name} {size}" for name, size in zip(names, sizes))
        line = f"bnorm{NORM[dtype]} -n {x.shape[0]} -c {x.shape[1]}{sizes} -m 1 {way}"
        last = {4: channels_last_2d, 5: channels_last_3d}.get(x.dim(), lambda tensor: False)
        # PyTorch computes these itself unless told otherwise.
        is_wanted = os.environ.get("PYTORCH_MIOPEN_SUGGEST_NHWC_BATCHNORM") == "1"
        for is_last in self._layouts(last(x)):
            if not is_last:
                self.add(line)
            elif is_wanted:
                self.add(f"{line} --layout {'NDHWC' if x.dim() == 5 else 'NHWC'}")

    def rnn(self, mode, bits, x, batches, hidden, params, layers, bias, bidirectional, dropout,
            batch_first, training):
        """Adds one direction of an RNN."""
        if not torch.backends.cudnn.enabled or x.numel() == 0:
            return
        dtype = self.type_of(x)
        if dtype not in RNN:
            return  # PyTorch computes these itself.
        if batches is None:
            steps, batch = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
        else:
            steps = len(batches)
            batch = ",".join(map(str, batches)) if batches[0] != batches[-1] else batches[0]
        line = f"rnn{RNN[dtype]} -n {batch} -W {x.shape[-1]} -H {hidden} -l {layers}"
        line += f" -b {int(bias)} -m {mode} -p 0 -r {int(bidirectional)} -q 0 -k {steps}"
        line += f" -c {int(not training)}" if bits == 1 else ""
        line += f" -F {bits}"
        line += f" -U 1 -P {dropout}" if dropout else ""
        self.add(line)

    def ctc(self, scores, targets, input_lengths, target_lengths, blank):
        """Adds a CTC loss, which MIOpen computes together with its gradient. Lengths are numbers,
        or None where they are not known."""
        if not torch.backends.cudnn.enabled or scores.dtype != torch.float32 or scores.numel() == 0:
            return
        if blank != 0 or scores.dim() != 3 or targets.dim() != 1 or targets.dtype != torch.int32:
            return  # PyTorch computes these itself.
        if input_lengths is None or target_lengths is None:
            return self.refuse("a CTC loss whose lengths are computed (use --compute)")
        pairs = list(zip(input_lengths, target_lengths))
        if any(labels >= 256 or labels > steps for steps, labels in pairs):
            return
        steps, batch, classes = scores.shape
        self.add(
            f"ctc -n {batch} -c {classes - 1} -k {','.join(map(str, input_lengths))}"
            f" -l {','.join(map(str, target_lengths))} -m 1 -b 0 -a 0 -F 1"
        )

    def notes(self):
        """What to say at the end, besides the number of problems."""
        for what, calls in sorted(self.unwritten.items()):
            yield f"not written: {what}, {calls} times"
        if self.both_layouts:
            yield (
                "channels_last: NHWC and NCHW are both written, since PyTorch decides by "
                "PYTORCH_MIOPEN_SUGGEST_NHWC; set it to 1 or 0, as the program will have it"
            )
        most = max((len(shapes) for _, shapes in self.shapes.values()), default=0)
        if most > MANY_SHAPES:
            layers = sum(len(shapes) > MANY_SHAPES for _, shapes in self.shapes.values())
            yield (
                f"{layers} layers have inputs of more than {MANY_SHAPES} shapes, one of {most}: a "
                "package has the kernels of the shapes that were recorded, and others are compiled "
                "when they come; round sizes up to a few, by padding or buckets"
            )


CONVOLUTIONS = {
    "convolution", "_convolution", "convolution_overrideable", "convolution_backward",
    "convolution_backward_overrideable", "cudnn_convolution", "miopen_convolution",
    "miopen_convolution_relu", "miopen_convolution_add_relu", "miopen_convolution_transpose",
    "miopen_depthwise_convolution",
}
NORMS = {
    "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "_native_batch_norm_legit_functional", "_batch_norm_with_update",
    "_batch_norm_with_update_functional", "_batch_norm_no_update", "cudnn_batch_norm",
    "miopen_batch_norm", "native_batch_norm_backward", "batch_norm_backward",
    "cudnn_batch_norm_backward", "miopen_batch_norm_backward",
}


def channels_last_2d(tensor):
    return _is_last(tensor, [1, 3, 2, 0])


def channels_last_3d(tensor):
    return _is_last(tensor, [1, 4, 3, 2, 0])


def _is_last(tensor, order):
    """What PyTorch's `suggest_memory_format` says.

    Source: c10/core/MemoryFormat.h, `is_channels_last_strides_2d_s4`.
    """
    sizes, strides = tensor.shape, tensor.stride()
    least = 0
    if strides[1] == 0:
        return False
    for axis in order:
        if sizes[axis] == 0 or strides[axis] < least:
            return False
        if axis == 0 and least == strides[1]:
            return False
        least = strides[axis] * max(sizes[axis], 1)
    return True
