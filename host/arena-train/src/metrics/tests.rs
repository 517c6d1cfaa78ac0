//! Measures of records that were made up.
