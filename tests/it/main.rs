//! Whole-program tests of arena, in one binary so that everything is linked once.

#![allow(clippy::unwrap_used)]

mod negmas;
mod tidy;
