//! Writes models in ONNX's format, as far as the tests need it.

/// Protocol Buffers.
#[derive(Default, Clone)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn raw(&mut self, mut value: u64) {
        while value > 127 {
            self.0.push(value as u8 | 128);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn number(mut self, field: u64, value: i64) -> Self {
        self.raw(field << 3);
        self.raw(value as u64);
        self
    }

    fn float(mut self, field: u64, value: f32) -> Self {
        self.raw(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.raw(field << 3 | 2);
        self.raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn text(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    pub(crate) fn message(self, field: u64, message: Self) -> Self {
        self.bytes(field, &message.0)
    }
}

/// Numbers of `TensorProto.DataType`.
pub(crate) const FLOAT: i64 = 1;
pub(crate) const INT8: i64 = 3;
const INT64: i64 = 7;
pub(crate) const FLOAT16: i64 = 10;
pub(crate) const DOUBLE: i64 = 11;
pub(crate) const BFLOAT16: i64 = 16;

/// A graph being written.
#[derive(Clone)]
pub(crate) struct Graph {
    graph: Message,
    functions: Vec<Message>,
    data_type: i64,
}

impl Graph {
    /// Of tensors of fp32.
    pub(crate) fn new() -> Self {
        Self::with_data_type(FLOAT)
    }

    pub(crate) fn with_data_type(data_type: i64) -> Self {
        let graph = Message::default().text(2, "graph");
        Self { graph, functions: Vec::new(), data_type }
    }

    fn add(&mut self, field: u64, part: Message) -> &mut Self {
        self.graph = std::mem::take(&mut self.graph).message(field, part);
        self
    }

    /// A tensor's name and sizes: `x:N,3,8,8`; words are symbols, and `?`
    /// stands for a size without name.
    fn info(&self, text: &str) -> Message {
        let (name, sizes) = text.split_once(':').expect("a name and sizes");
        let mut shape = Message::default();
        for size in sizes.split(',').filter(|size| !size.is_empty()) {
            let dimension = match size.parse::<i64>() {
                Ok(value) => Message::default().number(1, value),
                Err(_) if size == "?" => Message::default(),
                Err(_) => Message::default().text(2, size),
            };
            shape = shape.message(1, dimension);
        }
        let tensor = Message::default().number(1, self.data_type).message(2, shape);
        Message::default().text(1, name).message(2, Message::default().message(1, tensor))
    }

    pub(crate) fn input(&mut self, text: &str) -> &mut Self {
        self.add(11, self.info(text))
    }

    /// An output, of which nothing is said.
    pub(crate) fn output(&mut self, name: &str) -> &mut Self {
        self.add(12, Message::default().text(1, name))
    }

    /// What the model states of a tensor.
    pub(crate) fn states(&mut self, text: &str) -> &mut Self {
        self.add(13, self.info(text))
    }

    /// Weights without values, in a file of their own that is not there.
    pub(crate) fn weights(&mut self, text: &str) -> &mut Self {
        let location = Message::default().text(1, "location").text(2, "weights.bin");
        let tensor = tensor(text, self.data_type).message(13, location).number(14, 1);
        self.add(5, tensor)
    }

    pub(crate) fn integers(&mut self, name: &str, values: &[i64]) -> &mut Self {
        let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add(5, tensor(&format!("{name}:{}", values.len()), INT64).bytes(9, &raw))
    }

    pub(crate) fn scalar(&mut self, name: &str, value: f32) -> &mut Self {
        self.add(5, tensor(&format!("{name}:"), FLOAT).bytes(9, &value.to_le_bytes()))
    }

    /// A layer, as [`node`] has it.
    pub(crate) fn node(&mut self, line: &str, attributes: &[&str]) -> &mut Self {
        self.add(1, node(line, attributes))
    }

    /// Many of the same layer.
    pub(crate) fn nodes(&mut self, line: &str, count: usize) -> &mut Self {
        let one = Message::default().message(1, node(line, &[])).0;
        self.graph.0.extend(one.repeat(count));
        self
    }

    /// A layer with graphs inside of it.
    pub(crate) fn outer(&mut self, line: &str, graphs: &[(&str, &Self)]) -> &mut Self {
        let layer = graphs.iter().fold(node(line, &[]), |layer, (name, inner)| {
            let graph = Message::default().text(1, name).message(6, inner.graph.clone());
            layer.message(5, graph.number(20, 5))
        });
        self.add(1, layer)
    }

    /// A function with one layer.
    pub(crate) fn function(&mut self, name: &str, line: &str) -> &mut Self {
        let function = Message::default().text(1, name).message(7, node(line, &[]));
        self.functions.push(function.text(4, "x").text(5, "y").text(10, "own"));
        self
    }

    /// The model.
    pub(crate) fn model(&self) -> Vec<u8> {
        let set = Message::default().text(1, "").number(2, 13);
        let model = Message::default().number(1, 8).message(8, set);
        let functions = self.functions.iter().cloned();
        let model = model.message(7, self.graph.clone());
        functions.fold(model, |model, function| model.message(25, function)).0
    }
}

fn tensor(text: &str, data_type: i64) -> Message {
    let (name, sizes) = text.split_once(':').expect("a name and sizes");
    let sizes = sizes.split(',').filter(|size| !size.is_empty());
    let tensor = sizes
        .fold(Message::default(), |tensor, size| tensor.number(1, size.parse().expect("a size")));
    tensor.number(2, data_type).text(8, name)
}

/// `Conv x w -> y`, and attributes with numbers (`strides=2,2`), one (`group=2`,
/// `alpha=0.5`) or words (`auto_pad=SAME_UPPER`).
fn node(line: &str, attributes: &[&str]) -> Message {
    let (from, to) = line.split_once(" -> ").expect("an output");
    let mut words = from.split(' ');
    let operation = words.next().expect("an operation");
    let mut node = Message::default().text(4, operation).text(3, &format!("the/{to}"));
    for input in words {
        node = node.text(1, input);
    }
    node = node.text(2, to);
    for attribute in attributes {
        let (name, value) = attribute.split_once('=').expect("a value");
        let mut message = Message::default().text(1, name);
        let lists =
            ["kernel_shape", "strides", "pads", "dilations", "output_padding", "output_shape"];
        if lists.contains(&name) {
            for number in value.split(',') {
                message = message.number(8, number.parse().expect("a number"));
            }
            message = message.number(20, 7);
        } else if let Ok(number) = value.parse() {
            message = message.number(3, number).number(20, 2);
        } else if let Ok(number) = value.parse() {
            message = message.float(2, number).number(20, 1);
        } else {
            message = message.text(4, value).number(20, 3);
        }
        node = node.message(5, message);
    }
    node
}
