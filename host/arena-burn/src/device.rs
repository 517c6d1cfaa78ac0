//! Devices that burn can compute on.
//!
//! A device is taken as named or refused: nothing falls back to another.

use std::fmt;

use burn::tensor::Device;

use crate::error::BurnError;

/// A device, by the name that a tournament file gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurnDevice {
    /// burn's CPU backend.
    Flex,
    /// A GPU through Vulkan, Metal or DX12; the adapter is wgpu's choice, or that of
    /// `CUBECL_WGPU_DEFAULT_DEVICE`, such as `IntegratedGpu(0)` or `Cpu`.
    Wgpu,
    /// The first NVIDIA GPU.
    Cuda,
}

impl BurnDevice {
    /// Returns the name: `flex`, `wgpu` or `cuda`.
    pub fn name(self) -> &'static str {
        match self {
            BurnDevice::Flex => "flex",
            BurnDevice::Wgpu => "wgpu",
            BurnDevice::Cuda => "cuda",
        }
    }

    /// Opens the device.
    ///
    /// # Errors
    /// [`BurnError::NotCompiled`] names the feature that is off, [`BurnError::NoAdapter`] says what
    /// is missing on this machine.
    pub fn open(self) -> Result<Device, BurnError> {
        match self {
            BurnDevice::Flex => Ok(Device::flex()),
            BurnDevice::Wgpu => open_wgpu(),
            BurnDevice::Cuda => open_cuda(),
        }
    }
}

impl fmt::Display for BurnDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returns what the device is called by its driver, such as `llvmpipe (LLVM 15.0.6, 256 bits)`,
/// where it is not burn's own CPU backend.
pub fn adapter(device: &Device) -> Option<String> {
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    return device.identity().map(|identity| identity.name.to_string());
    #[cfg(not(any(feature = "wgpu", feature = "cuda")))]
    {
        let _ = device;
        None
    }
}

#[cfg(feature = "wgpu")]
fn open_wgpu() -> Result<Device, BurnError> {
    use std::sync::OnceLock;

    // wgpu's runtime is opened once in a process; every later opening is the same device.
    static OPENED: OnceLock<Result<Device, String>> = OnceLock::new();
    OPENED
        .get_or_init(|| Device::wgpu_options().init().map_err(|error| error.to_string()))
        .clone()
        .map_err(|reason| BurnError::NoAdapter { device: BurnDevice::Wgpu, reason })
}

#[cfg(not(feature = "wgpu"))]
fn open_wgpu() -> Result<Device, BurnError> {
    Err(BurnError::NotCompiled { device: BurnDevice::Wgpu })
}

#[cfg(feature = "cuda")]
fn open_cuda() -> Result<Device, BurnError> {
    use burn::tensor::DeviceType;

    Device::enumerate(DeviceType::Cuda).into_iter().next().ok_or_else(|| {
        let reason = "the driver is not installed or finds no GPU".to_string();
        BurnError::NoAdapter { device: BurnDevice::Cuda, reason }
    })
}

#[cfg(not(feature = "cuda"))]
fn open_cuda() -> Result<Device, BurnError> {
    Err(BurnError::NotCompiled { device: BurnDevice::Cuda })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_backend_is_always_there() {
        assert!(BurnDevice::Flex.open().is_ok());
    }

    #[cfg(not(feature = "wgpu"))]
    #[test]
    fn a_device_that_is_not_compiled_in_names_its_feature() {
        let error = BurnDevice::Wgpu.open().expect_err("the feature is off");
        assert_eq!(
            error.to_string(),
            "device `wgpu` is not compiled in: it takes the feature `wgpu`"
        );
    }
}
