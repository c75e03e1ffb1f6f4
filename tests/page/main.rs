//! The page in a real browser: Chromium without a window, driven over its DevTools pipe.
//!
//! Needs `chromium` or `chromium-browser` on the path, or the program that `CHROMIUM` names.

mod browser;
mod reports;
mod tab;

mod contrast;
mod drawing;
mod hostile;
mod reading;
mod size;
mod source;
