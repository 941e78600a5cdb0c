//! The loop of one pass, for every width of vectors.

/// Defines `crc32c`, `is_available` and `ROUND_BYTES` of a module. The arguments are the processor's feature with these
/// vectors, their type, their bytes, their class of registers, and the instruction that moves one. The module has functions
/// `starting_with`, `in_each_lane`, `moved` and `finish` for such vectors.
macro_rules! one_pass {
    ($feature:tt, $vector:ty, $vector_bytes:literal, $register:ident, $move:literal) => {
        /// Bytes of one round of the loop.
        pub(super) const ROUND_BYTES: usize = 4 * $vector_bytes;

        const OVER_ROUND: [i64; 2] = lane::factors(32 * $vector_bytes);
        const OVER_VECTORS: [[i64; 2]; 3] = [
            lane::factors(24 * $vector_bytes),
            lane::factors(16 * $vector_bytes),
            lane::factors(8 * $vector_bytes),
        ];

        /// Whether the processor has what [`crc32c`] needs. The answer is cached.
        pub(super) fn is_available() -> bool {
            std::arch::is_x86_feature_detected!("vpclmulqdq")
                && std::arch::is_x86_feature_detected!($feature)
                && std::arch::is_x86_feature_detected!("sse4.2")
        }

        /// See [`super::crc32c_racy`].
        ///
        /// # Safety
        /// As there; `len` is a multiple of [`ROUND_BYTES`] and not zero; the processor [`is_available`].
        #[target_feature(enable = $feature, enable = "vpclmulqdq,pclmulqdq,sse4.2")]
        pub(super) unsafe fn crc32c(earlier: u32, from: *const u8, to: Option<*mut u8>, len: usize) -> u32 {
            // SAFETY: as the caller guarantees.
            unsafe {
                match to {
                    None => fold::<false>(earlier, from, std::ptr::null_mut(), len),
                    Some(to) => fold::<true>(earlier, from, to, len),
                }
            }
        }

        /// # Safety
        /// As [`crc32c`]; `to` is used if `COPIES`.
        #[target_feature(enable = $feature, enable = "vpclmulqdq,pclmulqdq,sse4.2")]
        unsafe fn fold<const COPIES: bool>(earlier: u32, from: *const u8, to: *mut u8, len: usize) -> u32 {
            // SAFETY: the caller guarantees `len` bytes, which are whole rounds, and each vector is one of them.
            unsafe {
                // A checksum is the complement of the state, which is added to the first bits.
                let mut a = starting_with(!earlier, next::<COPIES>(from, to, 0));
                let mut b = next::<COPIES>(from, to, $vector_bytes);
                let mut c = next::<COPIES>(from, to, 2 * $vector_bytes);
                let mut d = next::<COPIES>(from, to, 3 * $vector_bytes);
                let (factors, mut at) = (in_each_lane(OVER_ROUND), ROUND_BYTES);
                while at < len {
                    a = moved(a, factors, next::<COPIES>(from, to, at));
                    b = moved(b, factors, next::<COPIES>(from, to, at + $vector_bytes));
                    c = moved(c, factors, next::<COPIES>(from, to, at + 2 * $vector_bytes));
                    d = moved(d, factors, next::<COPIES>(from, to, at + 3 * $vector_bytes));
                    at += ROUND_BYTES;
                }
                d = moved(a, in_each_lane(OVER_VECTORS[0]), d);
                d = moved(b, in_each_lane(OVER_VECTORS[1]), d);
                finish(moved(c, in_each_lane(OVER_VECTORS[2]), d))
            }
        }

        /// Reads the vector at `at`, and copies it if `COPIES`. The compiler cannot see into the load: it does not repeat
        /// it.
        ///
        /// # Safety
        /// `from`, and `to` if `COPIES`, have a vector at `at`.
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn next<const COPIES: bool>(from: *const u8, to: *mut u8, at: usize) -> $vector {
            let vector: $vector;
            // SAFETY: as the caller guarantees.
            unsafe {
                std::arch::asm!(
                    concat!($move, " {vector}, [{from} + {at}]"),
                    vector = out($register) vector,
                    from = in(reg) from,
                    at = in(reg) at,
                    options(nostack, preserves_flags, readonly)
                );
                if COPIES {
                    std::arch::asm!(
                        concat!($move, " [{to} + {at}], {vector}"),
                        vector = in($register) vector,
                        to = in(reg) to,
                        at = in(reg) at,
                        options(nostack, preserves_flags)
                    );
                }
            }
            vector
        }
    };
}

pub(super) use one_pass;
