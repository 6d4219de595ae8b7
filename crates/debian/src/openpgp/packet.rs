//! Parses packets, and multiprecision integers in them.
//!
//! Source: RFC 9580, sections 3.2 and 4.2.

pub(super) const SIGNATURE: u8 = 2;
pub(super) const PUBLIC_KEY: u8 = 6;
pub(super) const USER_ID: u8 = 13;
pub(super) const PUBLIC_SUBKEY: u8 = 14;
pub(super) const USER_ATTRIBUTE: u8 = 17;

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) tag: u8,
    pub(super) body: &'a [u8],
}

/// An iterator over packets, up to the end or the first invalid packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packets<'a>(&'a [u8]);

impl<'a> Packets<'a> {
    pub(super) fn in_bytes(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self) -> Option<Packet<'a>> {
        let mut bytes = Bytes(self.0);
        let head = bytes.u8()?;
        if head & 0x80 == 0 {
            return None;
        }
        let (tag, length) = if head & 0x40 == 0 {
            let length = match head & 3 {
                0 => usize::from(bytes.u8()?),
                1 => usize::from(bytes.u16()?),
                2 => usize::try_from(bytes.u32()?).ok()?,
                // A length up to the end of the file, which is not supported.
                _ => return None,
            };
            ((head >> 2) & 15, length)
        } else {
            let length = match bytes.u8()? {
                short @ 0..192 => usize::from(short),
                high @ 192..224 => two_bytes(high, bytes.u8()?),
                255 => usize::try_from(bytes.u32()?).ok()?,
                // A partial length, which is not supported.
                _ => return None,
            };
            (head & 63, length)
        };
        let body = bytes.take(length)?;
        self.0 = bytes.0;
        Some(Packet { tag, body })
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let packet = self.take();
        if packet.is_none() {
            self.0 = &[];
        }
        packet
    }
}

/// A length in two bytes, as in packets and subpackets.
pub(super) fn two_bytes(high: u8, low: u8) -> usize {
    ((usize::from(high) - 192) << 8) + usize::from(low) + 192
}

/// Reads bytes from the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A multiprecision integer, without leading zeros.
    pub(super) fn mpi(&mut self) -> Option<&'a [u8]> {
        let bits = usize::from(self.u16()?);
        let bytes = self.take(bits.div_ceil(8))?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Some(&bytes[zeros..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_all_forms_are_read() {
        let check = |bytes: &[u8], expected: &[(u8, usize)]| {
            let found: Vec<_> = Packets::in_bytes(bytes).map(|p| (p.tag, p.body.len())).collect();
            assert_eq!(found, expected, "{:?}", &bytes[..bytes.len().min(8)]);
        };
        check(&[0x88, 2, 1, 2, 0xc2, 1, 9], &[(2, 2), (2, 1)]);
        check(&[0x99, 0, 1, 7], &[(6, 1)]);
        check(&[0x9a, 0, 0, 0, 1, 7], &[(6, 1)]);
        check(&[0xcd, 255, 0, 0, 0, 1, 7], &[(13, 1)]);
        check(&[&[0xcd, 192, 0][..], &[0; 192]].concat(), &[(13, 192)]);
        check(&[&[0xcd, 192, 1][..], &[0; 193]].concat(), &[(13, 193)]);
        // Cut short, of unlimited length, in parts, and no packet at all.
        for none in [&[0x88, 2, 1][..], &[0x8b, 1], &[0xcd, 224, 1], &[0x08, 0], &[0x88], &[]] {
            check(none, &[]);
        }
    }

    #[test]
    fn numbers_come_without_leading_zeros() {
        assert_eq!(Bytes(&[0, 9, 1, 2, 5]).mpi(), Some(&[1, 2][..]));
        assert_eq!(Bytes(&[0, 16, 0, 2]).mpi(), Some(&[2][..]));
        assert_eq!(Bytes(&[0, 17, 0, 2]).mpi(), None);
    }
}
