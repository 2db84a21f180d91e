//! WebAssembly: the only module that knows wasmtime.
