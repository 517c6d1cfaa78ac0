//! What a log does to files: round trips, what is refused, and disks that fail.

mod kit;
mod faulty;
mod round_trips;
mod faults;
mod refusals;
mod witnessed;
