//! Loops over bytes, compiled for the vector instructions of the current processor.

/// A loop for [`on_widest_vectors`]. It is compiled once for each kind of processor, so [`Kernel::run`] and the
/// functions that it calls are `#[inline(always)]`.
pub trait Kernel {
    /// Its result.
    type Output;

    /// The loop.
    fn run(self) -> Self::Output;
}

/// Runs `kernel` with 256-bit vectors if the processor has them, else with the instructions that every processor has.
pub fn on_widest_vectors<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the check has just found that the processor has it.
        return unsafe { with_avx2(kernel) };
    }
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
