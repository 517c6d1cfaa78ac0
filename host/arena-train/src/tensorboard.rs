//! Event files as TensorBoard reads them: scalars by step.
//!
//! A file is a row of records: eight bytes of length and four of its checksum, the event, four of
//! the event's checksum (tensorflow, `core/lib/io/record_writer.cc`); an event is a message of
//! protocol buffers (tensorflow, `core/util/event.proto`, `core/framework/summary.proto`).
//! Checksums are CRC-32C, turned and shifted (`core/lib/hash/crc32c.h`, `Mask`).
//!
//! By hand, since the crates that do it are no longer kept and bring a compiler of protocol
//! buffers or a library of images.
//!
//! Not here: files and clocks.

/// What every file begins with.
const FILE_VERSION: &str = "brain.Event:2";
/// What is added to a turned checksum.
const MASK_DELTA: u32 = 0xa282_ead8;

/// Wire types of protocol buffers.
const FIXED_64: u8 = 1;
const LENGTH: u8 = 2;
const FIXED_32: u8 = 5;

/// Returns the record that every file begins with. Times are seconds since 1970.
pub fn first_record(seconds: f64) -> Vec<u8> {
    let mut event = Vec::new();
    push_double(&mut event, 1, seconds);
    push_bytes(&mut event, 3, FILE_VERSION.as_bytes());
    framed(&event)
}

/// Returns the record of a step's scalars.
pub fn scalars_record(seconds: f64, step: u32, scalars: &[(String, f64)]) -> Vec<u8> {
    let mut summary = Vec::new();
    for (tag, value) in scalars {
        let mut entry = Vec::new();
        push_bytes(&mut entry, 1, tag.as_bytes());
        push_key(&mut entry, 2, FIXED_32);
        entry.extend((*value as f32).to_le_bytes());
        push_bytes(&mut summary, 1, &entry);
    }
    let mut event = Vec::new();
    push_double(&mut event, 1, seconds);
    push_key(&mut event, 2, 0);
    push_number(&mut event, u64::from(step));
    push_bytes(&mut event, 5, &summary);
    framed(&event)
}

fn framed(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(checksum(&length).to_le_bytes());
    record.extend(event);
    record.extend(checksum(event).to_le_bytes());
    record
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(MASK_DELTA)
}

fn push_key(out: &mut Vec<u8>, field: u8, wire_type: u8) {
    out.push(field << 3 | wire_type);
}

/// Seven bits a byte, the lowest first.
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_double(out: &mut Vec<u8>, field: u8, value: f64) {
    push_key(out, field, FIXED_64);
    out.extend(value.to_le_bytes());
}

fn push_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    push_key(out, field, LENGTH);
    push_number(out, bytes.len() as u64);
    out.extend(bytes);
}

#[cfg(test)]
mod tests {
    use arena_core::hexadecimal::hex;

    use super::*;

    // What TensorBoard's own writer (tensorboard 2.21, `record_writer`) makes of them.
    #[test]
    fn records_are_those_of_tensorboards_own_writer() {
        assert_eq!(
            hex(&first_record(1.5)),
            "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c"
        );
        let scalars = [("reward".to_owned(), 0.25), ("deal_rate".to_owned(), -1.0)];
        assert_eq!(
            hex(&scalars_record(2.0, 300, &scalars)),
            "2f000000000000006d5d1d5009000000000000004010ac022a210a0d0a0672657761726415\
             0000803e0a100a096465616c5f7261746515000080bfe392b789"
        );
    }
}
