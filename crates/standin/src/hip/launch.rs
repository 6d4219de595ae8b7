//! Launches: nothing runs. They are answered all the same, since libraries
//! load further kernels between two launches.

use crate::succeed;

succeed! {
    hipExtModuleLaunchKernel
    hipModuleLaunchCooperativeKernel
    hipModuleLaunchKernel
}
