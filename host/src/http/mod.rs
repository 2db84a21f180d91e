//! HTTP: the only module that knows axum or a status code.
