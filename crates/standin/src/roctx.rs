//! rocTX: markers for profilers, which are dropped.

use crate::succeed;

succeed! {
    roctxMarkA
    roctxRangePop
    roctxRangePushA
}
