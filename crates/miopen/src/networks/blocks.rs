//! Blocks from papers, each of a few layers whose widths follow from its own.

use super::layer::Layer;
use super::walk::Walker;
use crate::calls::Shape;

impl Walker<'_> {
    /// Adds a block with that name.
    pub(super) fn block(&mut self, layer: &Layer<'_>) -> Result<(), String> {
        for at in 0..layer.repeat {
            let stride = if at == 0 { layer.stride } else { [1, 1] };
            match layer.name {
                "basic" => self.residual_block(layer, stride, false)?,
                "bottleneck" => self.residual_block(layer, stride, true)?,
                "residual" => self.darknet_block(layer)?,
                "inverted" => self.inverted(layer, stride)?,
                "dense" => self.dense(layer)?,
                "transition" => self.transition()?,
                "resblock" => self.diffusion_block(layer)?,
                name => return self.counted(name, layer),
            }
        }
        Ok(())
    }

    /// Adds one layer, written as in a table.
    fn layer(&mut self, line: &str) -> Result<(), String> {
        let layer = Layer::read(line, self.shape.channels)?;
        if layer.name == "conv" { self.conv(&layer) } else { self.pool(&layer) }
    }

    /// Two 3x3 convolutions, or a 3x3 one between two 1x1 ones, the last of which is four times as
    /// wide; and a 1x1 convolution beside them if the shapes differ.
    ///
    /// Source: arXiv:1512.03385, figures 2 and 5, and section 3.3 (B);
    /// torchvision's resnet.py on where the stride is.
    fn residual_block(
        &mut self,
        layer: &Layer<'_>,
        [stride, _]: [u64; 2],
        bottleneck: bool,
    ) -> Result<(), String> {
        let (width, input) = (layer.out()?, self.shape);
        let norm = if layer.has("frozen") { "frozen" } else { "bn" };
        let out = if bottleneck { 4 * width } else { width };
        if bottleneck {
            self.layer(&format!("conv {width} 1x1 {norm} relu"))?;
            self.layer(&format!("conv {width} 3x3 /{stride} same {norm} relu"))?;
            self.layer(&format!("conv {out} 1x1 {norm}"))?;
        } else {
            self.layer(&format!("conv {width} 3x3 /{stride} same {norm} relu"))?;
            self.layer(&format!("conv {out} 3x3 same {norm}"))?;
        }
        let output = self.shape;
        if input != output {
            self.shape = input;
            self.layer(&format!("conv {out} 1x1 /{stride} {norm}"))?;
        }
        self.shape = output;
        self.activation(&Layer::read("add relu", out)?);
        Ok(())
    }

    /// A 1x1 convolution to half of the channels, and a 3x3 one back.
    ///
    /// Source: arXiv:1804.02767, table 1.
    fn darknet_block(&mut self, layer: &Layer<'_>) -> Result<(), String> {
        let out = layer.out()?;
        self.layer(&format!("conv {} 1x1 bn leaky", out / 2))?;
        self.layer(&format!("conv {out} 3x3 same bn leaky"))
    }

    /// A 1x1 convolution that widens, a depthwise one, squeeze and excitation
    /// if wanted, and a 1x1 convolution without activation.
    ///
    /// Source: arXiv:1801.04381, table 1; arXiv:1905.11946, section 4, with
    /// the squeezed width, a quarter of the block's input, as
    /// arXiv:1807.11626 and torchvision's efficientnet.py have it.
    fn inverted(&mut self, layer: &Layer<'_>, [stride, _]: [u64; 2]) -> Result<(), String> {
        let (out, [size, _]) = (layer.out()?, layer.size()?);
        let expand = layer.number("expand").ok_or("its expansion is missing")?;
        let activation = if layer.has("silu") { "silu" } else { "relu6" };
        let (input, wide) = (self.shape.channels, self.shape.channels * expand);
        if expand != 1 {
            self.layer(&format!("conv {wide} 1x1 bn {activation}"))?;
        }
        self.layer(&format!("conv {wide} {size}x{size} /{stride} depthwise same bn {activation}"))?;
        if layer.has("se") {
            let shape = self.shape;
            self.layer("avgpool global")?;
            self.layer(&format!("conv {} 1x1 bias {activation}", (input / 4).max(1)))?;
            self.layer(&format!("conv {wide} 1x1 bias sigmoid"))?;
            self.shape = shape;
        }
        self.layer(&format!("conv {out} 1x1 bn"))
    }

    /// Normalization before a 1x1 convolution to four times the growth, and
    /// before a 3x3 one, whose output is added to the channels.
    ///
    /// Source: arXiv:1608.06993, section 3 ("DenseNet-B").
    fn dense(&mut self, layer: &Layer<'_>) -> Result<(), String> {
        let (growth, input) = (layer.out()?, self.shape.channels);
        self.norm(true);
        self.activation(&Layer::read("add relu", input)?);
        self.layer(&format!("conv {} 1x1 bn relu", 4 * growth))?;
        self.layer(&format!("conv {growth} 3x3 same"))?;
        self.shape.channels += input;
        Ok(())
    }

    /// Source: arXiv:1608.06993, section 3, with half of the channels
    /// ("DenseNet-C").
    fn transition(&mut self) -> Result<(), String> {
        let input = self.shape.channels;
        self.norm(true);
        self.activation(&Layer::read("add relu", input)?);
        self.layer(&format!("conv {} 1x1", input / 2))?;
        self.layer("avgpool 2x2 /2")
    }

    /// Two 3x3 convolutions after group normalization, with a fully connected layer of the time
    /// between them if there is one, and a 1x1 convolution beside them if the numbers of channels
    /// differ.
    ///
    /// Source: CompVis/stable-diffusion, `ResBlock` in
    /// ldm/modules/diffusionmodules/openaimodel.py, `ResnetBlock` in model.py.
    fn diffusion_block(&mut self, layer: &Layer<'_>) -> Result<(), String> {
        let (out, input) = (layer.out()?, self.shape);
        self.parameters(2 * input.channels);
        self.layer(&format!("conv {out} 3x3 same bias"))?;
        if let Some(time) = layer.number("time") {
            self.parameters(time * out + out);
        }
        self.parameters(2 * out);
        self.layer(&format!("conv {out} 3x3 same bias"))?;
        if input.channels != out {
            let Shape { size, .. } = self.shape;
            self.shape = input;
            self.layer(&format!("conv {out} 1x1 bias"))?;
            self.shape.size = size;
        }
        Ok(())
    }

    /// A layer that MIOpen does not compute, for the sum of parameters.
    fn counted(&mut self, name: &str, layer: &Layer<'_>) -> Result<(), String> {
        let width = self.shape.channels;
        let square = width * width;
        let count = match name {
            "matrix" => layer.size().map(|[rows, columns]| rows * columns)?,
            "linear" => layer.size().map(|[inputs, outputs]| (inputs + 1) * outputs)?,
            "groupnorm" | "layernorm" => 2 * width,
            // Queries, keys, values and the result; keys have no bias.
            "attention" => {
                let context = layer.number("context").unwrap_or(width);
                let biases = if layer.has("unbiased") { width } else { 3 * width };
                2 * square + 2 * context * width + biases
            }
            // Four times as wide and back.
            "mlp" => 8 * square + 5 * width,
            // The same, with gates.
            "geglu" => 12 * square + 9 * width,
            _ => return Err("there is no such layer".to_owned()),
        };
        self.parameters(count);
        Ok(())
    }
}
