//! Networks as models, written layer by layer as in their papers, and as frameworks export them for
//! training.

use super::writer::Graph;

/// A model being built, and the number of its next tensor.
struct Builder {
    graph: Graph,
    next: usize,
}

/// A tensor: its name and channels.
#[derive(Clone)]
struct Tensor(String, u64);

/// A convolution: filter, stride, padding, groups.
#[derive(Clone, Copy)]
struct Filter(u64, u64, u64, u64);

impl Builder {
    fn new() -> (Self, Tensor) {
        let mut graph = Graph::new();
        graph.input("image:N,3,224,224").scalar("zero", 0.0).scalar("six", 6.0);
        (Self { graph, next: 0 }, Tensor("image".to_owned(), 3))
    }

    fn layer(&mut self, call: &str, channels: u64, attributes: &[&str]) -> Tensor {
        self.next += 1;
        let name = format!("t{}", self.next);
        self.graph.node(&format!("{call} -> {name}"), attributes);
        Tensor(name, channels)
    }

    fn conv(&mut self, x: &Tensor, out: u64, filter: Filter) -> Tensor {
        let Filter(size, stride, pad, groups) = filter;
        let weights = format!("w{}", self.next);
        self.graph.weights(&format!("{weights}:{out},{},{size},{size}", x.1 / groups));
        let attributes = [
            format!("kernel_shape={size},{size}"),
            format!("strides={stride},{stride}"),
            format!("pads={pad},{pad},{pad},{pad}"),
            format!("group={groups}"),
        ];
        let attributes = attributes.each_ref().map(String::as_str);
        self.layer(&format!("Conv {} {weights}", x.0), out, &attributes)
    }

    fn norm(&mut self, x: &Tensor) -> Tensor {
        let scales = format!("s{}", self.next);
        self.graph.weights(&format!("{scales}:{}", x.1));
        let call = format!("BatchNormalization {} {scales} {scales} {scales} {scales}", x.0);
        self.layer(&call, x.1, &[])
    }

    fn relu(&mut self, x: &Tensor) -> Tensor {
        self.layer(&format!("Relu {}", x.0), x.1, &[])
    }

    /// Convolution, normalization, activation.
    fn block(&mut self, x: &Tensor, out: u64, filter: Filter, activation: &str) -> Tensor {
        let made = self.conv(x, out, filter);
        let made = self.norm(&made);
        match activation {
            "relu" => self.relu(&made),
            "relu6" => self.layer(&format!("Clip {} zero six", made.0), out, &[]),
            _ => made,
        }
    }

    fn add(&mut self, x: &Tensor, y: &Tensor) -> Tensor {
        self.layer(&format!("Add {} {}", x.0, y.0), x.1, &[])
    }

    fn stem(&mut self, x: &Tensor) -> Tensor {
        let x = self.block(x, 64, Filter(7, 2, 3, 1), "relu");
        let attributes = ["kernel_shape=3,3", "strides=2,2", "pads=1,1,1,1"];
        self.layer(&format!("MaxPool {}", x.0), 64, &attributes)
    }

    fn head(mut self, x: &Tensor) -> Vec<u8> {
        let pooled = self.layer(&format!("GlobalAveragePool {}", x.0), x.1, &[]);
        let flat = self.layer(&format!("Flatten {}", pooled.0), x.1, &[]);
        self.graph.weights(&format!("fc:1000,{}", x.1)).weights("bias:1000");
        let classes = self.layer(&format!("Gemm {} fc bias", flat.0), 1000, &["transB=1"]);
        let scores = self.layer(&format!("Softmax {}", classes.0), 1000, &["axis=1"]);
        self.graph.output(&scores.0);
        self.graph.model()
    }
}

/// ResNet-50 v1.5.
pub(crate) fn resnet50() -> Vec<u8> {
    let (mut model, image) = Builder::new();
    let mut x = model.stem(&image);
    for (width, count, first) in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)] {
        for at in 0..count {
            let stride = if at == 0 { first } else { 1 };
            let y = model.block(&x, width, Filter(1, 1, 0, 1), "relu");
            let y = model.block(&y, width, Filter(3, stride, 1, 1), "relu");
            let y = model.block(&y, 4 * width, Filter(1, 1, 0, 1), "");
            let beside = match at {
                0 => model.block(&x, 4 * width, Filter(1, stride, 0, 1), ""),
                _ => x,
            };
            let sum = model.add(&y, &beside);
            x = model.relu(&sum);
        }
    }
    model.head(&x)
}

/// MobileNet v2.
pub(crate) fn mobilenet_v2() -> Vec<u8> {
    let (mut model, image) = Builder::new();
    let mut x = model.block(&image, 32, Filter(3, 2, 1, 1), "relu6");
    let stages = [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ];
    for (expand, out, count, first) in stages {
        for at in 0..count {
            let (stride, wide) = (if at == 0 { first } else { 1 }, x.1 * expand);
            let mut y = x.clone();
            if expand > 1 {
                y = model.block(&y, wide, Filter(1, 1, 0, 1), "relu6");
            }
            let y = model.block(&y, wide, Filter(3, stride, 1, wide), "relu6");
            let y = model.block(&y, out, Filter(1, 1, 0, 1), "");
            x = if stride == 1 && x.1 == out { model.add(&x, &y) } else { y };
        }
    }
    let x = model.block(&x, 1280, Filter(1, 1, 0, 1), "relu6");
    model.head(&x)
}

/// DenseNet-121.
pub(crate) fn densenet121() -> Vec<u8> {
    let (mut model, image) = Builder::new();
    let mut x = model.stem(&image);
    for (block, count) in [6, 12, 24, 16].into_iter().enumerate() {
        for _ in 0..count {
            let y = model.norm(&x);
            let y = model.relu(&y);
            let y = model.block(&y, 128, Filter(1, 1, 0, 1), "relu");
            let y = model.conv(&y, 32, Filter(3, 1, 1, 1));
            x = model.layer(&format!("Concat {} {}", x.0, y.0), x.1 + 32, &["axis=1"]);
        }
        let y = model.norm(&x);
        x = model.relu(&y);
        if block < 3 {
            let y = model.conv(&x, x.1 / 2, Filter(1, 1, 0, 1));
            let attributes = ["kernel_shape=2,2", "strides=2,2"];
            x = model.layer(&format!("AveragePool {}", y.0), y.1, &attributes);
        }
    }
    model.head(&x)
}
