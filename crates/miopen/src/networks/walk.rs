//! Follows a network from layer to layer, and computes shapes, steps and sums.

use std::collections::BTreeMap;

use super::layer::Layer;
use super::selection::NetworkError;
use super::table::{Group, Item, Network, Tables};
use crate::calls::{Activation, Call, Filter, Pool, PoolKind, Shape};

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub(super) call: Call,
    /// Whether it happens only in training.
    pub(super) training: bool,
}

/// The result of a walk.
#[derive(Debug)]
pub(super) struct Walked {
    pub(super) steps: Vec<Step>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare it"))]
    pub(super) sums: Sums,
    #[cfg_attr(not(test), expect(dead_code, reason = "tests compare it"))]
    pub(super) output: Shape,
}

/// Sums over a network.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) parameters: u64,
    /// Running means and variances of batch normalization.
    pub(super) statistics: u64,
    /// Multiply-adds of convolutions and fully connected layers, without those that happen only in
    /// training.
    pub(super) macs: u64,
    /// Layers with a convolution.
    pub(super) convolutions: usize,
}

/// Follows a network with this input: channels, height, width.
pub(super) fn walk(
    tables: &Tables,
    network: &Network,
    input: [u64; 3],
) -> Result<Walked, NetworkError> {
    let mut walker = Walker {
        tables,
        network: &network.name,
        shape: Shape { channels: input[0], size: [input[1], input[2]] },
        stack: Vec::new(),
        saved: BTreeMap::new(),
        steps: Vec::new(),
        sums: Sums::default(),
        training: false,
        shared: false,
        unasked: false,
    };
    walker.items(&network.layers)?;
    Ok(Walked { steps: walker.steps, sums: walker.sums, output: walker.shape })
}

/// The state of a walk.
pub(super) struct Walker<'a> {
    tables: &'a Tables,
    network: &'a str,
    pub(super) shape: Shape,
    stack: Vec<Shape>,
    saved: BTreeMap<String, Shape>,
    steps: Vec<Step>,
    sums: Sums,
    training: bool,
    shared: bool,
    unasked: bool,
}

impl<'a> Walker<'a> {
    fn items(&mut self, items: &'a [Item]) -> Result<(), NetworkError> {
        items.iter().try_for_each(|item| match item {
            Item::Line(line) => self.line(line),
            Item::Branches(branches) => self.branches(branches),
            Item::Group(group) => self.group(group),
        })
    }

    fn branches(&mut self, branches: &'a [Vec<Item>]) -> Result<(), NetworkError> {
        let input = self.shape;
        let mut channels = 0;
        for branch in branches {
            self.shape = input;
            self.items(branch)?;
            channels += self.shape.channels;
        }
        self.shape.channels = channels;
        Ok(())
    }

    fn group(&mut self, group: &'a Group) -> Result<(), NetworkError> {
        let (shape, before) = (self.shape, (self.training, self.shared, self.unasked));
        self.training |= group.training;
        self.shared |= group.shared;
        self.unasked |= group.unasked;
        for _ in 0..group.repeat {
            self.items(&group.layers)?;
        }
        (self.training, self.shared, self.unasked) = before;
        if group.aside || group.training || group.unasked {
            self.shape = shape;
        }
        Ok(())
    }

    fn line(&mut self, line: &'a str) -> Result<(), NetworkError> {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(block) = self.tables.blocks.get(name) {
            return self.items(block);
        }
        let done = match name {
            "save" => {
                self.saved.insert(rest.to_owned(), self.shape);
                Ok(())
            }
            "take" => self.saved(rest).map(|shape| self.shape = shape),
            "concat" => self.saved(rest).map(|shape| self.shape.channels += shape.channels),
            "conv" if !line.ends_with(" plain") && !line.contains(" plain ") => {
                self.read(&format!("{line} {}", self.tables.convolutions))
            }
            _ => self.read(line),
        };
        done.map_err(|what| NetworkError::Layer {
            network: self.network.to_owned(),
            layer: line.to_owned(),
            what,
        })
    }

    fn saved(&self, name: &str) -> Result<Shape, String> {
        self.saved.get(name).copied().ok_or_else(|| "nothing is saved under this name".to_owned())
    }

    fn read(&mut self, line: &str) -> Result<(), String> {
        let layer = Layer::read(line, self.shape.channels)?;
        match layer.name {
            "push" => self.stack.push(self.shape),
            // The larger image is cropped.
            "pop" => self.shape.channels += self.stack.pop().ok_or("nothing was pushed")?.channels,
            "channels" => self.shape.channels = layer.out()?,
            "input" => self.shape = Shape { channels: layer.out()?, size: layer.size()? },
            "upsample" => {
                self.shape.size = self.shape.size.map(|size| size * layer.out.unwrap_or(1))
            }
            "conv" | "deconv" => {
                let mut one = layer.clone();
                for _ in 0..layer.repeat {
                    self.conv(&one)?;
                    one.stride = [1, 1];
                }
            }
            "batchnorm" => {
                self.norm(true);
                self.activation(&layer);
            }
            "maxpool" | "avgpool" => self.pool(&layer)?,
            "fc" => self.fully_connected(&layer)?,
            "softmax" => self.step(Call::Softmax(self.shape.channels)),
            _ => return self.block(&layer),
        }
        Ok(())
    }

    pub(super) fn step(&mut self, call: Call) {
        if !self.unasked {
            self.steps.push(Step { call, training: self.training });
        }
    }

    pub(super) fn parameters(&mut self, count: u64) {
        if !self.shared {
            self.sums.parameters += count;
        }
    }

    fn macs(&mut self, count: u64) {
        if !self.training && !self.unasked {
            self.sums.macs += count;
        }
    }

    /// A convolution and what follows it: bias, normalization, activation.
    pub(super) fn conv(&mut self, layer: &Layer<'_>) -> Result<(), String> {
        // Padding at only the end of both axes is added before.
        self.shape.size = self.shape.size.map(|size| size + layer.number("end").unwrap_or(0));
        let out_channels = layer.out()?;
        let filter = Filter {
            input: self.shape,
            out_channels,
            size: layer.size()?,
            pad: layer.pad()?,
            stride: layer.stride,
            dilation: layer.number("dilation").unwrap_or(1),
            groups: if layer.has("depthwise") { self.shape.channels } else { 1 },
            transposed: layer.name == "deconv",
        };
        let output = filter.output().ok_or("the input is smaller than the filter")?;
        let [height, width] = filter.size;
        let weights = filter.input.channels / filter.groups * out_channels * height * width;
        let calls = if filter.transposed { filter.input.size } else { output };
        self.parameters(weights + if layer.has("bias") { out_channels } else { 0 });
        self.macs(weights * calls[0] * calls[1]);
        self.sums.convolutions += 1;
        self.step(Call::Convolution(filter));
        self.shape = Shape { channels: out_channels, size: output };
        // A frozen normalization is a multiplication and an addition.
        self.norm(layer.has("bn"));
        self.activation(layer);
        Ok(())
    }

    pub(super) fn norm(&mut self, there: bool) {
        if there {
            self.parameters(2 * self.shape.channels);
            self.sums.statistics += 2 * self.shape.channels;
            self.step(Call::BatchNorm(self.shape));
        }
    }

    pub(super) fn activation(&mut self, layer: &Layer<'_>) {
        for (word, activation) in [
            ("relu", Activation::Relu),
            ("relu6", Activation::Relu6),
            ("leaky", Activation::Leaky(0.1)),
            ("sigmoid", Activation::Sigmoid),
        ] {
            if layer.has(word) {
                self.step(Call::Activation(self.shape, activation));
            }
        }
    }

    pub(super) fn pool(&mut self, layer: &Layer<'_>) -> Result<(), String> {
        // By default, frameworks' averages include padding.
        let average = layer.name == "avgpool";
        let kind = if average { PoolKind::AverageWithPadding } else { PoolKind::Max };
        if layer.has("global") {
            let size = self.shape.size;
            let pool = Pool { input: self.shape, kind, size, pad: [0, 0], stride: [1, 1] };
            self.shape.size = [1, 1];
            self.step(Call::Pool(pool));
            return Ok(());
        }
        let [size, pad, stride] = [layer.size()?, layer.pad()?, layer.stride];
        let pool = Pool { input: self.shape, kind, size, pad, stride };
        let [down, up] = [false, true].map(|up| pool.output(up));
        let (down, up) = down.zip(up).ok_or("the input is smaller than the window")?;
        self.shape.size = if layer.has("ceil") { up } else { down };
        // MIOpen rounds down; frameworks compute a rounded-up pooling in another way.
        if self.shape.size == down {
            self.step(Call::Pool(pool));
        }
        Ok(())
    }

    fn fully_connected(&mut self, layer: &Layer<'_>) -> Result<(), String> {
        let (inputs, outputs) =
            (self.shape.channels * self.shape.size[0] * self.shape.size[1], layer.out()?);
        self.parameters(inputs * outputs + outputs);
        self.macs(inputs * outputs);
        self.shape = Shape { channels: outputs, size: [1, 1] };
        self.activation(layer);
        Ok(())
    }
}
