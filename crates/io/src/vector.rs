//! Loops over bytes, compiled for the vectors of the processor that they run on.

/// A loop that [`on_widest_vectors`] runs. It is compiled once for each kind of processor, so [`Kernel::run`] and what it
/// calls are `#[inline(always)]`.
pub trait Kernel {
    /// What comes of it.
    type Output;

    /// The loop.
    fn run(self) -> Self::Output;
}

/// Runs `kernel` with 256-bit vectors where the processor has them, else with what every processor of its kind has.
pub fn on_widest_vectors<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just been found to have it.
        return unsafe { with_avx2(kernel) };
    }
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
