//! Stand-ins for the HIP runtime and its neighbours, so that a stock ROCm
//! library can be asked what it would compile.
