//! The loops over blocks, written so that the compiler can use vector instructions.

#![expect(clippy::inline_always, reason = "what a kernel calls is compiled anew for each kind of processor")]

use linerate_io::vector::Kernel;

/// Bytes of each block that are processed at once: with P and Q they fill half of the vector registers.
pub(super) const STEP_BYTES: usize = 128;

/// P, and Q if there is one, of data blocks.
pub(super) struct Generate<'a> {
    pub(super) data: &'a [&'a [u8]],
    pub(super) p: &'a mut [u8],
    pub(super) q: Option<&'a mut [u8]>,
}

/// Adds `from`, multiplied by `factor`, to `into`.
pub(super) struct AddProduct<'a> {
    pub(super) into: &'a mut [u8],
    pub(super) from: &'a [u8],
    pub(super) factor: u8,
}

impl Kernel for Generate<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { data, p, q } = self;
        let p = p.as_chunks_mut::<STEP_BYTES>().0.iter_mut();
        let Some(q) = q else {
            for (at, p) in p.enumerate() {
                *p = [0; STEP_BYTES];
                for block in data {
                    let bytes = &block.as_chunks::<STEP_BYTES>().0[at];
                    (0..STEP_BYTES).for_each(|lane| p[lane] ^= bytes[lane]);
                }
            }
            return;
        };
        for (at, (p, q)) in p.zip(q.as_chunks_mut::<STEP_BYTES>().0).enumerate() {
            let (mut sum, mut weighted) = ([0; STEP_BYTES], [0; STEP_BYTES]);
            // Horner's rule, from the last block to the first: double, then add.
            for block in data.iter().rev() {
                let bytes = &block.as_chunks::<STEP_BYTES>().0[at];
                for lane in 0..STEP_BYTES {
                    sum[lane] ^= bytes[lane];
                    weighted[lane] = doubled(weighted[lane]) ^ bytes[lane];
                }
            }
            (*p, *q) = (sum, weighted);
        }
    }
}

impl Kernel for AddProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { into, from, factor } = self;
        let steps = into.as_chunks_mut::<STEP_BYTES>().0.iter_mut().zip(from.as_chunks::<STEP_BYTES>().0);
        for (into, from) in steps {
            let (mut power, mut left) = (*from, factor);
            // Bit by bit: add the power of two if the factor has it.
            loop {
                if left & 1 == 1 {
                    (0..STEP_BYTES).for_each(|lane| into[lane] ^= power[lane]);
                }
                left >>= 1;
                if left == 0 {
                    break;
                }
                (0..STEP_BYTES).for_each(|lane| power[lane] = doubled(power[lane]));
            }
        }
    }
}

/// Twice a value of the field. A bit that is shifted out is replaced by the polynomial, without a branch.
#[inline(always)]
fn doubled(value: u8) -> u8 {
    (value << 1) ^ (((value as i8) >> 7) as u8 & 0x1d)
}
