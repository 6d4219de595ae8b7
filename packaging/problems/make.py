"""Makes the lists of problems of well-known networks, from what torchvision, diffusers and
transformers build without weights:

    PYTHONPATH=packaging/python python packaging/problems/make.py [NAME …]

A list has the inference of one image in fp32, and what training has besides, marked as such.
`gfxpack problems NAME` changes batch, type, layout and direction in the lines. Networks that are in
no package (darknet53, unet, yolov3) have lists made by hand from their papers.
"""

import importlib.metadata
import os
import pathlib
import sys
import tempfile

import torch
import torchvision.models as vision
import torchvision.models.detection as detection
import torchvision.models.segmentation as segmentation
from torch import nn

import gfxpack_torch


# Tensors of some networks are channels_last by chance.
os.environ["PYTORCH_MIOPEN_SUGGEST_NHWC"] = "0"


def image(build, size):
    """A network of one image."""
    return build, lambda model, batch: model(torch.zeros(batch, 3, *size))


def detector(build, size):
    """A detector without what it does for each of the regions that it finds."""

    def run(model, batch):
        features = list(model.backbone(torch.zeros(batch, 3, *size)).values())
        (model.rpn.head if hasattr(model, "rpn") else model.head)(features)

    return lambda: build(weights=None, weights_backbone=None), run


def whisper(bins, width):
    def build():
        from transformers import WhisperConfig, WhisperModel

        return WhisperModel(WhisperConfig(
            num_mel_bins=bins, d_model=width, encoder_layers=1, decoder_layers=1,
            encoder_attention_heads=4, decoder_attention_heads=4,
        )).encoder

    return build, lambda model, batch: model(torch.zeros(batch, bins, 3000))


def wav2vec2():
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    return Wav2Vec2Model(Wav2Vec2Config(num_hidden_layers=1, mask_time_prob=0.0)).feature_extractor


def diffusion(size, width, **config):
    def build():
        from diffusers import UNet2DConditionModel

        return UNet2DConditionModel(sample_size=size, cross_attention_dim=width, **config)

    def run(model, batch):
        added = {"text_embeds": torch.zeros(batch, 1280), "time_ids": torch.zeros(batch, 6)}
        model(torch.zeros(batch, 4, size, size), torch.tensor(1), torch.zeros(batch, 77, width),
              added_cond_kwargs=added)

    return build, run


def autoencoder(size):
    def build():
        from diffusers import AutoencoderKL

        return AutoencoderKL(
            block_out_channels=[128, 256, 512, 512], layers_per_block=2, latent_channels=4,
            down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
        )

    return build, lambda model, batch: model(torch.zeros(batch, 3, size, size))


SDXL = dict(
    block_out_channels=(320, 640, 1280), transformer_layers_per_block=(1, 2, 10),
    down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    attention_head_dim=(5, 10, 20), use_linear_projection=True, addition_embed_type="text_time",
    addition_time_embed_dim=256, projection_class_embeddings_input_dim=2816,
)
TV, DI, TR = "torchvision", "diffusers", "transformers"
# Name, title with the size of an input, package, and the network with what runs it.
NETWORKS = {
    name: (title, package, *network)
    for name, title, package, network in [
        ("alexnet", "AlexNet, 3x224x224", TV, image(vision.alexnet, (224, 224))),
        ("convnext-tiny", "ConvNeXt tiny, 3x224x224", TV, image(vision.convnext_tiny, (224, 224))),
        ("deeplabv3-resnet50", "DeepLab v3 with ResNet-50, 3x520x520", TV,
         image(lambda: segmentation.deeplabv3_resnet50(weights=None, weights_backbone=None,
                                                       aux_loss=True), (520, 520))),
        ("densenet121", "DenseNet-121, 3x224x224", TV, image(vision.densenet121, (224, 224))),
        ("efficientnet-b0", "EfficientNet-B0, 3x224x224", TV,
         image(vision.efficientnet_b0, (224, 224))),
        ("efficientnet-v2-s", "EfficientNet v2 small, 3x384x384", TV,
         image(vision.efficientnet_v2_s, (384, 384))),
        ("googlenet", "GoogLeNet, 3x224x224", TV,
         image(lambda: vision.googlenet(init_weights=False), (224, 224))),
        ("inception-v3", "Inception v3, 3x299x299", TV,
         image(lambda: vision.inception_v3(init_weights=False), (299, 299))),
        ("mask-rcnn", "Mask R-CNN with ResNet-50, without its heads, 3x800x1344", TV,
         detector(detection.maskrcnn_resnet50_fpn, (800, 1344))),
        ("mobilenet-v2", "MobileNet v2, 3x224x224", TV, image(vision.mobilenet_v2, (224, 224))),
        ("mobilenet-v3-large", "MobileNet v3 large, 3x224x224", TV,
         image(vision.mobilenet_v3_large, (224, 224))),
        ("regnet-y-8gf", "RegNetY-8GF, 3x224x224", TV, image(vision.regnet_y_8gf, (224, 224))),
        ("resnet18", "ResNet-18, 3x224x224", TV, image(vision.resnet18, (224, 224))),
        ("resnet34", "ResNet-34, 3x224x224", TV, image(vision.resnet34, (224, 224))),
        ("resnet50", "ResNet-50 v1.5, 3x224x224", TV, image(vision.resnet50, (224, 224))),
        ("resnet101", "ResNet-101 v1.5, 3x224x224", TV, image(vision.resnet101, (224, 224))),
        ("resnet152", "ResNet-152 v1.5, 3x224x224", TV, image(vision.resnet152, (224, 224))),
        ("resnext50", "ResNeXt-50 32x4d, 3x224x224", TV,
         image(vision.resnext50_32x4d, (224, 224))),
        ("retinanet", "RetinaNet with ResNet-50, 3x800x1344", TV,
         detector(detection.retinanet_resnet50_fpn, (800, 1344))),
        ("sdxl-unet", "Stable Diffusion XL's U-Net, images of 1024x1024, 4x128x128", DI,
         diffusion(128, 2048, **SDXL)),
        ("sdxl-vae", "Stable Diffusion XL's autoencoder, 3x1024x1024", DI, autoencoder(1024)),
        ("shufflenet-v2", "ShuffleNet v2 x1.0, 3x224x224", TV,
         image(vision.shufflenet_v2_x1_0, (224, 224))),
        ("squeezenet", "SqueezeNet 1.1, 3x224x224", TV, image(vision.squeezenet1_1, (224, 224))),
        ("ssd", "SSD300 with VGG-16, 3x300x300", TV, detector(detection.ssd300_vgg16, (300, 300))),
        ("stable-diffusion-unet", "Stable Diffusion 1's U-Net, images of 512x512, 4x64x64", DI,
         diffusion(64, 768)),
        ("stable-diffusion-vae", "Stable Diffusion 1's autoencoder, 3x512x512", DI,
         autoencoder(512)),
        ("vgg16", "VGG-16, 3x224x224", TV, image(vision.vgg16, (224, 224))),
        ("wav2vec2", "wav2vec 2.0 base: its encoder of waves, a second at 16 kHz", TR,
         (wav2vec2, lambda model, batch: model(torch.zeros(batch, 16000)))),
        ("whisper-tiny", "Whisper tiny: its stem, 80x3000", TR, whisper(80, 384)),
        ("whisper-base", "Whisper base: its stem, 80x3000", TR, whisper(80, 512)),
        ("whisper-small", "Whisper small: its stem, 80x3000", TR, whisper(80, 768)),
        ("whisper-medium", "Whisper medium: its stem, 80x3000", TR, whisper(80, 1024)),
        ("whisper-large", "Whisper large, v1 and v2: its stem, 80x3000", TR, whisper(80, 1280)),
        ("whisper-large-v3", "Whisper large v3: its stem, 128x3000", TR, whisper(128, 1280)),
    ]
}


def lines(build, run, training):
    """What one image makes MIOpen compute; with `training`, in a network that is trained."""
    # Some normalizations do not train with one image.
    batch = 2 if training else 1
    with tempfile.NamedTemporaryFile() as file:
        with gfxpack_torch.record(file.name), torch.no_grad():
            model = build()
            assert isinstance(model, nn.Module)
            run(model.train(training), batch)
        text = pathlib.Path(file.name).read_text().splitlines()
    lines = {line.partition(" # ")[0].replace("MIOpenDriver ", "") for line in text}
    return {line.replace(f" -n {batch} ", " -n 1 ") for line in lines}


def make(name):
    title, package, build, run = NETWORKS[name]
    inference = lines(build, run, False)
    trained = {line for line in lines(build, run, True) if line.startswith("conv")} - inference
    norms = {line.replace("--forw 1 -b 0 -s 1 -r 1", "--forw 2 -b 0 -r 1")
             for line in lines(build, run, True) if line.startswith("bnorm")} - inference
    version = importlib.metadata.version(package).partition("+")[0]
    text = f"# {title}\n# {package} {version}, by packaging/problems/make.py {name}\n"
    text += "".join(f"{line}\n" for line in sorted(inference))
    text += "".join(f"{line} # training\n" for line in sorted(trained | norms))
    pathlib.Path(__file__).with_name(f"{name}.txt").write_text(text)


for name in sys.argv[1:] or NETWORKS:
    make(name)
