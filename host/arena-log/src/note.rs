//! Signed notes and the keys that verify them (C2SP signed-note v1.0.0).
//!
//! A note reads back to exactly the bytes it was read from, or it is refused: there is one
//! spelling per note. Signatures of unknown keys are kept and ignored; a known key whose
//! signature fails refuses the whole note, and so does its absence.
//!
//! Not here: what a text says (`checkpoint`), timestamped signatures (`cosignature`), and
//! which keys are to be trusted (`policy`).

use std::fmt;

use sha2::{Digest, Sha256};

use crate::key::{KeyError, PublicKey};
use crate::text;

/// Largest note in bytes: 16 signatures of the largest post-quantum kind, about 5 kB each
/// before base64, and the text fit twice.
pub const NOTE_BYTES_MAX: usize = 256 << 10;
/// Most signatures on a note. C2SP asks for 16 at least.
pub const SIGNATURES_MAX: usize = 64;
/// Longest name of a key in bytes: what an ML-DSA cosignature can name.
pub const NAME_BYTES_MAX: usize = 255;

const SIGNATURE_PREFIX: &str = "\u{2014} ";
const KEY_ID_BYTES: usize = 4;
const KEY_ID_HEX_DIGITS: usize = 8;

/// What a key signs with it, as signed-note numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyKind {
    /// 0x01: plain Ed25519 over the text of a note. Logs sign so.
    Log,
    /// 0x04: Ed25519 over a time and a checkpoint (`cosignature`). Witnesses sign so.
    Witness,
}

impl KeyKind {
    /// Returns the type byte.
    pub fn byte(self) -> u8 {
        match self {
            KeyKind::Log => 0x01,
            KeyKind::Witness => 0x04,
        }
    }

    fn from_byte(byte: u8) -> Option<KeyKind> {
        [KeyKind::Log, KeyKind::Witness].into_iter().find(|kind| kind.byte() == byte)
    }
}

/// A named public key: what verifies the signatures of one log or one witness.
///
/// Written as `NAME+KEYID+BASE64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vkey {
    name: String,
    kind: KeyKind,
    key: PublicKey,
}

impl Vkey {
    /// Gives `key` a name and a use.
    ///
    /// # Errors
    /// The name is empty, too long, or has a space, a plus or a control character.
    pub fn new(name: &str, kind: KeyKind, key: PublicKey) -> Result<Vkey, NoteError> {
        check_name(name)?;
        Ok(Vkey { name: name.to_owned(), kind, key })
    }

    /// Reads a verifier key as it is published.
    ///
    /// # Errors
    /// It is not in that form, its key id is not the one of its key, its kind is not 0x01 or
    /// 0x04, or its key is none that only its owner can sign with.
    pub fn parse(vkey: &str) -> Result<Vkey, NoteError> {
        let malformed = || NoteError::Vkey { vkey: text::excerpt(vkey) };
        let mut parts = vkey.splitn(3, '+');
        let (Some(name), Some(id), Some(encoded)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(malformed());
        };
        check_name(name)?;
        let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if id.len() != KEY_ID_HEX_DIGITS || !id.bytes().all(is_hex) {
            return Err(malformed());
        }
        let bytes = text::from_base64(encoded).ok_or_else(malformed)?;
        let (&kind, key) = bytes.split_first().ok_or_else(malformed)?;
        let kind = KeyKind::from_byte(kind).ok_or(NoteError::KeyKind { found: kind })?;
        let key = key.try_into().map_err(|_| malformed())?;
        let key = PublicKey::from_bytes(key).map_err(NoteError::Key)?;
        let parsed = Vkey { name: name.to_owned(), kind, key };
        let computed = hex(&parsed.key_id());
        if computed != id {
            return Err(NoteError::KeyId { found: id.to_owned(), computed });
        }
        Ok(parsed)
    }

    /// The name of the signer; for a log, its origin.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the key is for.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The key itself.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Returns the first four bytes of SHA-256(name ‖ 0x0A ‖ kind ‖ key). It finds a key among
    /// few; it proves nothing.
    pub fn key_id(&self) -> [u8; KEY_ID_BYTES] {
        let mut digest = Sha256::new();
        digest.update(self.name.as_bytes());
        digest.update([b'\n', self.kind.byte()]);
        digest.update(self.key.to_bytes());
        let hash: [u8; 32] = digest.finalize().into();
        [hash[0], hash[1], hash[2], hash[3]]
    }
}

impl fmt::Display for Vkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![self.kind.byte()];
        bytes.extend_from_slice(&self.key.to_bytes());
        write!(f, "{}+{}+{}", self.name, hex(&self.key_id()), text::base64(&bytes))
    }
}

/// One signature line of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteSignature {
    /// The name of the key.
    pub name: String,
    /// Which key of that name.
    pub key_id: [u8; 4],
    /// The signature: of an unknown key, any bytes.
    pub signature: Vec<u8>,
}

impl fmt::Display for NoteSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&self.key_id[..], &self.signature].concat();
        writeln!(f, "{SIGNATURE_PREFIX}{} {}", self.name, text::base64(&bytes))
    }
}

/// A text with signatures, none of them verified yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<NoteSignature>,
}

impl Note {
    /// Puts `signatures` under `text`.
    ///
    /// # Errors
    /// The note would not read back: the text does not end in a newline or has a control
    /// character, or there is no signature or too many or too large a one.
    pub fn new(text: String, signatures: Vec<NoteSignature>) -> Result<Note, NoteError> {
        let note = Note { text, signatures };
        if Note::parse(note.to_string().as_bytes())? != note {
            return Err(NoteError::NotCanonical);
        }
        Ok(note)
    }

    /// Reads a whole note. Nothing in it is verified by that.
    ///
    /// # Errors
    /// It is too large, is not in the format, or is not the only spelling of what it says.
    pub fn parse(bytes: &[u8]) -> Result<Note, NoteError> {
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(NoteError::TooLarge { bytes: bytes.len() });
        }
        let whole = std::str::from_utf8(bytes)
            .map_err(|error| NoteError::NotUtf8 { offset: error.valid_up_to() })?;
        if let Some(offset) = whole.bytes().position(|byte| byte < 0x20 && byte != b'\n') {
            return Err(NoteError::Control { offset, byte: bytes[offset] });
        }
        // The text may have empty lines of its own, so the last one separates.
        let blank = whole.rfind("\n\n").ok_or(NoteError::NoSignatures)?;
        let (text, lines) = (&whole[..=blank], &whole[blank + 2..]);
        if lines.is_empty() {
            return Err(NoteError::NoSignatures);
        }
        let lines = lines.strip_suffix('\n').ok_or(NoteError::NoFinalNewline)?;
        if lines.split('\n').count() > SIGNATURES_MAX {
            return Err(NoteError::TooManySignatures { found: lines.split('\n').count() });
        }
        let signatures = lines.split('\n').map(parse_signature).collect::<Result<_, _>>()?;
        let note = Note { text: text.to_owned(), signatures };
        if note.to_string() != whole {
            return Err(NoteError::NotCanonical);
        }
        Ok(note)
    }

    /// The signed text, its last newline included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The signatures, in order.
    pub fn signatures(&self) -> &[NoteSignature] {
        &self.signatures
    }

    /// Adds signatures under the others; those that are there already are left out.
    ///
    /// # Errors
    /// There are too many of them, or the note would be too large.
    pub fn with_signatures(self, added: &[NoteSignature]) -> Result<Note, NoteError> {
        let mut signatures = self.signatures;
        for signature in added {
            if !signatures.contains(signature) {
                signatures.push(signature.clone());
            }
        }
        Note::new(self.text, signatures)
    }

    /// Checks that the log key `vkey` signed the text, and that no line under its name and id
    /// says otherwise.
    ///
    /// # Errors
    /// The key did not sign, a signature of it is not one of this text, or it is a witness's.
    pub fn verify(&self, vkey: &Vkey) -> Result<(), NoteError> {
        if vkey.kind != KeyKind::Log {
            return Err(NoteError::WrongUse { vkey: vkey.to_string(), wanted: KeyKind::Log });
        }
        for line in self.lines_of(vkey)? {
            if !vkey.key.verifies(self.text.as_bytes(), &line.signature) {
                return Err(NoteError::BadSignature { name: vkey.name.clone() });
            }
        }
        Ok(())
    }

    /// Returns the signatures under a key's name and id, of which there is at least one.
    pub(crate) fn lines_of(&self, vkey: &Vkey) -> Result<Vec<&NoteSignature>, NoteError> {
        let key_id = vkey.key_id();
        let is_of_key = |line: &&NoteSignature| line.name == vkey.name && line.key_id == key_id;
        let lines: Vec<_> = self.signatures.iter().filter(is_of_key).collect();
        if lines.is_empty() {
            return Err(NoteError::Unsigned { name: vkey.name.clone(), key_id: hex(&key_id) });
        }
        Ok(lines)
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| write!(f, "{signature}"))
    }
}

fn parse_signature(line: &str) -> Result<NoteSignature, NoteError> {
    let malformed = || NoteError::SignatureLine { line: text::excerpt(line) };
    let rest = line.strip_prefix(SIGNATURE_PREFIX).ok_or_else(malformed)?;
    let (name, encoded) = rest.split_once(' ').ok_or_else(malformed)?;
    check_name(name)?;
    let bytes = text::from_base64(encoded).ok_or_else(malformed)?;
    match bytes.split_first_chunk() {
        Some((&key_id, signature)) if !signature.is_empty() => {
            Ok(NoteSignature { name: name.to_owned(), key_id, signature: signature.to_vec() })
        }
        _ => Err(malformed()),
    }
}

/// Checks that a key, and thus a log, may have this name.
///
/// # Errors
/// It is empty, too long, or has a space, a plus or a control character.
pub fn check_name(name: &str) -> Result<(), NoteError> {
    let is_bad =
        |character: char| character.is_whitespace() || character.is_control() || character == '+';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(is_bad) {
        return Err(NoteError::Name { name: text::excerpt(name) });
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A note or a verifier key that is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteError {
    /// The note is larger than any note needs to be.
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// The note is not UTF-8.
    NotUtf8 {
        /// The first byte that is not.
        offset: usize,
    },
    /// The note has a control character other than newline.
    Control {
        /// Where.
        offset: usize,
        /// Which.
        byte: u8,
    },
    /// No blank line with signatures after it.
    NoSignatures,
    /// The last line does not end.
    NoFinalNewline,
    /// More signatures than anyone needs.
    TooManySignatures {
        /// How many.
        found: usize,
    },
    /// A line below the blank line is not a signature.
    SignatureLine {
        /// The line.
        line: String,
    },
    /// The note is another spelling of what it says.
    NotCanonical,
    /// A key cannot have this name.
    Name {
        /// The name.
        name: String,
    },
    /// A verifier key is not in its form.
    Vkey {
        /// What was given.
        vkey: String,
    },
    /// A verifier key is of a kind that this program does not verify.
    KeyKind {
        /// The type byte.
        found: u8,
    },
    /// The id in a verifier key is not the one of its key.
    KeyId {
        /// The id given, in hexadecimal.
        found: String,
        /// The id of the key.
        computed: String,
    },
    /// The key itself is unusable.
    Key(KeyError),
    /// A log's key where a witness's is needed, or the reverse.
    WrongUse {
        /// The key.
        vkey: String,
        /// What was needed.
        wanted: KeyKind,
    },
    /// A cosignature states a time that none may state.
    Time {
        /// The time, in seconds since 1970.
        time: u64,
    },
    /// The key did not sign.
    Unsigned {
        /// Its name.
        name: String,
        /// Its id, in hexadecimal.
        key_id: String,
    },
    /// A signature of the key is not one of this text.
    BadSignature {
        /// The name of the key.
        name: String,
    },
}

impl fmt::Display for NoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoteError::TooLarge { bytes } => {
                write!(f, "a note has {bytes} bytes, the most is {NOTE_BYTES_MAX}")
            }
            NoteError::NotUtf8 { offset } => write!(f, "a note is not UTF-8 at byte {offset}"),
            NoteError::Control { offset, byte } => {
                write!(f, "a note has the control character 0x{byte:02x} at byte {offset}")
            }
            NoteError::NoSignatures => write!(f, "no signatures below the text of a note"),
            NoteError::NoFinalNewline => write!(f, "a note does not end in a newline"),
            NoteError::TooManySignatures { found } => {
                write!(f, "a note has {found} signatures, the most is {SIGNATURES_MAX}")
            }
            NoteError::SignatureLine { line } => {
                write!(f, "`{line}` is not the signature line of a note")
            }
            NoteError::NotCanonical => write!(f, "a note is not spelled as it should be"),
            NoteError::Name { name } => write!(
                f,
                "`{name}` is no name for a key: 1 to {NAME_BYTES_MAX} bytes, no space, no plus, \
                 no control character"
            ),
            NoteError::Vkey { vkey } => write!(
                f,
                "`{vkey}` is not a verifier key: expected `NAME+KEYID+BASE64`, as in `log.vkey`"
            ),
            NoteError::KeyKind { found } => write!(
                f,
                "a verifier key is of kind 0x{found:02x}: supported are 0x01 (log) and 0x04 \
                 (witness)"
            ),
            NoteError::KeyId { found, computed } => {
                write!(f, "a verifier key has the id `{found}`, its key gives `{computed}`")
            }
            NoteError::Key(error) => write!(f, "{error}"),
            NoteError::WrongUse { vkey, wanted } => {
                let wanted_name = match wanted {
                    KeyKind::Log => "a log",
                    KeyKind::Witness => "a witness",
                };
                let byte = wanted.byte();
                write!(f, "`{vkey}` is not the key of {wanted_name} (kind 0x{byte:02x})")
            }
            NoteError::Time { time } => write!(f, "a cosignature states the time {time}"),
            NoteError::Unsigned { name, key_id } => {
                write!(f, "no signature of `{name}` (key id `{key_id}`)")
            }
            NoteError::BadSignature { name } => {
                write!(f, "the signature of `{name}` is not one of this text")
            }
        }
    }
}

impl std::error::Error for NoteError {}
