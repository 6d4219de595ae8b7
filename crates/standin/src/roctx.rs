//! rocTX: marks for profilers, which go nowhere.

use crate::succeed;

succeed! {
    roctxMarkA
    roctxRangePop
    roctxRangePushA
}
