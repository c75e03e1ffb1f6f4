//! Small helpers for the other modules.
