//! Reads a model's file without the values of its weights. Large fields are skipped, so that a
//! model of gigabytes takes no more memory than its layers.

use std::io::{self, BufRead, Read as _, Seek, SeekFrom};

/// The longest field that is kept: no name, attribute, or constant that shapes depend on is longer.
const MAX_VALUE: u64 = 1 << 16;
/// The most bytes that are kept: layers and names of the largest models take a tenth.
const MAX_KEPT: usize = 1 << 28;
/// The deepest nesting of messages, as in readers of Protocol Buffers.
const MAX_DEPTH: usize = 100;

/// Why a file is no model.
#[derive(Debug)]
pub(super) enum StripError {
    Io(io::Error),
    NoModel(String),
}

impl From<io::Error> for StripError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Self::NoModel("it ends in the middle of a value".to_owned())
            }
            _ => Self::Io(error),
        }
    }
}

/// Messages whose fields are read.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Function,
    Tensor,
}

impl Kind {
    /// The kind of the messages in a field.
    ///
    /// Source: ONNX 1.18, onnx/onnx.proto.
    fn inner(self, field: u64) -> Option<Self> {
        match (self, field) {
            (Self::Model, 7) => Some(Self::Graph),
            (Self::Model, 25) => Some(Self::Function),
            (Self::Graph, 1) | (Self::Function, 7) => Some(Self::Node),
            (Self::Graph, 5) => Some(Self::Tensor),
            (Self::Node, 5) => Some(Self::Attribute),
            (Self::Attribute, 5 | 10) => Some(Self::Tensor),
            (Self::Attribute, 6 | 11) => Some(Self::Graph),
            _ => None,
        }
    }
}

/// Reads a model with this many bytes.
pub(super) fn strip_weights<R: BufRead + Seek>(
    reader: R,
    length: u64,
) -> Result<Vec<u8>, StripError> {
    let mut stripper = WeightStripper { reader, kept: 0 };
    let mut out = Vec::new();
    stripper.message(length, Kind::Model, 0, &mut out)?;
    Ok(out)
}

struct WeightStripper<R> {
    reader: R,
    kept: usize,
}

impl<R: BufRead + Seek> WeightStripper<R> {
    /// Source: Protocol Buffers' documentation, "Encoding".
    fn message(
        &mut self,
        length: u64,
        kind: Kind,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), StripError> {
        if depth > MAX_DEPTH {
            return Err(StripError::NoModel("its graphs are nested too deeply".to_owned()));
        }
        let mut left = length;
        while left > 0 {
            let key = self.varint(&mut left)?;
            match key & 7 {
                _ if key >> 3 == 0 => return Err(no_protobuf()),
                0 => {
                    let value = self.varint(&mut left)?;
                    put(out, key);
                    put(out, value);
                    self.keep(2)?;
                }
                wire @ (1 | 5) => {
                    let bytes = if wire == 1 { 8 } else { 4 };
                    take(&mut left, bytes)?;
                    put(out, key);
                    self.bytes(bytes, out)?;
                }
                2 => {
                    let size = self.varint(&mut left)?;
                    take(&mut left, size)?;
                    if let Some(inner) = kind.inner(key >> 3) {
                        let mut message = Vec::new();
                        self.message(size, inner, depth + 1, &mut message)?;
                        put(out, key);
                        put(out, message.len() as u64);
                        out.append(&mut message);
                        self.keep(2)?;
                    } else if size <= MAX_VALUE {
                        put(out, key);
                        put(out, size);
                        self.bytes(size, out)?;
                    } else {
                        self.pass(size)?;
                    }
                }
                _ => return Err(no_protobuf()),
            }
        }
        Ok(())
    }

    fn varint(&mut self, left: &mut u64) -> Result<u64, StripError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            take(left, 1)?;
            let mut byte = [0];
            self.reader.read_exact(&mut byte)?;
            value |= u64::from(byte[0] & 127) << shift;
            if byte[0] < 128 {
                return Ok(value);
            }
        }
        Err(no_protobuf())
    }

    fn bytes(&mut self, size: u64, out: &mut Vec<u8>) -> Result<(), StripError> {
        self.keep(size as usize)?;
        let read = self.reader.by_ref().take(size).read_to_end(out)?;
        if (read as u64) < size {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(())
    }

    fn pass(&mut self, size: u64) -> Result<(), StripError> {
        let size = i64::try_from(size).map_err(|_| no_protobuf())?;
        self.reader.seek(SeekFrom::Current(size))?;
        Ok(())
    }

    fn keep(&mut self, bytes: usize) -> Result<(), StripError> {
        self.kept += bytes;
        if self.kept > MAX_KEPT {
            let most = MAX_KEPT >> 20;
            return Err(StripError::NoModel(format!("its layers take more than {most} MiB")));
        }
        Ok(())
    }
}

/// Subtracts bytes from the rest of a message.
fn take(left: &mut u64, bytes: u64) -> Result<(), StripError> {
    *left = left.checked_sub(bytes).ok_or_else(|| {
        StripError::NoModel(
            "it is cut off, or no model: a value is longer than the rest".to_owned(),
        )
    })?;
    Ok(())
}

fn no_protobuf() -> StripError {
    StripError::NoModel("it is no model: its bytes are not those of Protocol Buffers".to_owned())
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}
