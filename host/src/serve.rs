//! Wires the service: configuration, stores, runtime, workers, router, drain.
