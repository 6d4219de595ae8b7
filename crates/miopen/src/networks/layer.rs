//! A layer's line: `conv 64 7x7 /2 same bn relu`.

/// The parts of a line: the layer's name, and in any order
/// - `64` or `*`: channels of the output, `*` those of the input
/// - `7x7`: height and width of the filter
/// - `/2`, `/1x2`: strides
/// - `x3`: how often the layer is repeated; strides are those of the first
/// - `pad 1`, `pad 0x3`, or `same` for half of the filter
/// - other words with a number, and words alone
#[derive(Debug, Clone)]
pub(super) struct Layer<'a> {
    pub(super) name: &'a str,
    pub(super) out: Option<u64>,
    pub(super) size: Option<[u64; 2]>,
    pub(super) stride: [u64; 2],
    pub(super) repeat: u64,
    pad: Option<[u64; 2]>,
    numbers: Vec<(&'a str, u64)>,
    flags: Vec<&'a str>,
}

/// Words that are followed by a number.
const WITH_NUMBER: [&str; 5] = ["dilation", "expand", "end", "time", "context"];
/// Words without a number.
const FLAGS: [&str; 15] = [
    "same",
    "bn",
    "frozen",
    "bias",
    "relu",
    "relu6",
    "leaky",
    "silu",
    "sigmoid",
    "global",
    "ceil",
    "depthwise",
    "se",
    "plain",
    "unbiased",
];

impl<'a> Layer<'a> {
    /// `channels` is the number of input channels.
    pub(super) fn read(line: &'a str, channels: u64) -> Result<Self, String> {
        let mut words = line.split_ascii_whitespace();
        let mut read = Self {
            name: words.next().ok_or("it is empty")?,
            out: None,
            size: None,
            stride: [1, 1],
            repeat: 1,
            pad: None,
            numbers: Vec::new(),
            flags: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` lacks its value"));
            if word == "*" {
                read.out = Some(channels);
            } else if word == "pad" {
                read.pad = Some(pair(value()?)?);
            } else if WITH_NUMBER.contains(&word) {
                read.numbers.push((word, number(value()?)?));
            } else if FLAGS.contains(&word) {
                read.flags.push(word);
            } else if let Some(stride) = word.strip_prefix('/') {
                read.stride = pair(stride)?;
            } else if let Some(times) = word.strip_prefix('x') {
                read.repeat = number(times)?;
            } else if word.contains('x') {
                read.size = Some(pair(word)?);
            } else {
                read.out = Some(number(word)?);
            }
        }
        Ok(read)
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    pub(super) fn number(&self, word: &str) -> Option<u64> {
        self.numbers.iter().find(|(name, _)| *name == word).map(|(_, number)| *number)
    }

    pub(super) fn out(&self) -> Result<u64, String> {
        self.out.ok_or_else(|| "its channels are missing".to_owned())
    }

    pub(super) fn size(&self) -> Result<[u64; 2], String> {
        self.size.ok_or_else(|| "its size is missing".to_owned())
    }

    /// Padding on each side.
    pub(super) fn pad(&self) -> Result<[u64; 2], String> {
        if self.has("same") {
            let dilation = self.number("dilation").unwrap_or(1);
            return Ok(self.size()?.map(|size| dilation * (size - 1) / 2));
        }
        Ok(self.pad.unwrap_or_default())
    }
}

/// One or two numbers: `7`, `1x7`.
fn pair(text: &str) -> Result<[u64; 2], String> {
    match text.split_once('x') {
        Some((height, width)) => Ok([number(height)?, number(width)?]),
        None => Ok([number(text)?; 2]),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no word of a layer"))
}
