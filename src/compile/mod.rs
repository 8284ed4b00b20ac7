//! From sources to machine code: toolkit discovery and setup, the compiler in a child that can be killed, a
//! content-addressed cache.
