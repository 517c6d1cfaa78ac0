//! Instruction sets that the kernels are written for.
//!
//! All of them give the same bits; they differ in speed alone.

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 F, BW, DQ and VL: 16 lanes.
    Avx512,
    /// AVX2 with FMA and F16C: 8 lanes.
    Avx2,
    /// Plain Rust. Slow where the compiler's target has no fused multiply-add.
    Portable,
    /// Vectors of sixteen lanes in plain Rust.
    #[cfg(test)]
    Lanes16,
}

impl Isa {
    /// Every instruction set, fastest first.
    pub const ALL: [Isa; 3] = [Isa::Avx512, Isa::Avx2, Isa::Portable];

    /// Returns the fastest one that this machine has.
    pub fn best() -> Isa {
        Self::ALL.into_iter().find(|isa| isa.is_available()).unwrap_or(Isa::Portable)
    }

    /// Returns every one that this machine has, fastest first.
    pub fn available() -> Vec<Isa> {
        let available = Self::ALL.into_iter().filter(|isa| isa.is_available());
        #[cfg(test)]
        let available = available.chain([Isa::Lanes16]);
        available.collect()
    }

    /// Says whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(test)]
            Self::Lanes16 => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// Returns how many panels of weights the widest tile spans.
    pub(crate) fn tile_panels(self) -> usize {
        match self {
            Self::Avx2 | Self::Portable => 1,
            Self::Avx512 => 2,
            #[cfg(test)]
            Self::Lanes16 => 2,
        }
    }

    /// Returns its name: `avx512`, `avx2`, `portable`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
            #[cfg(test)]
            Self::Lanes16 => "16 lanes in plain Rust",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_machine_lacks_is_said() {
        for isa in Isa::ALL.into_iter().filter(|isa| !isa.is_available()) {
            #[allow(clippy::print_stderr)]
            {
                eprintln!(
                    "SKIPPED: this machine lacks {}, so its intrinsics ran in no test",
                    isa.name()
                );
            }
        }
        assert!(Isa::available().contains(&Isa::best()));
    }
}
