//! The transformer in burn, for its CPU backend and for GPUs.
