//! Ed25519 keys: the ones that sign, their files, and the ones that verify.
//!
//! Only keys that nobody but their owner can sign with are accepted: weak ones (of small
//! order) and other spellings of a key are refused when they are read. Signatures are always
//! verified strictly. Secret bytes are wiped when a key is dropped, and never shown.
//!
//! Not here: where key files lie and who may read them.

use std::fmt;

use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, KeypairBytes};
use ed25519_dalek::{Signature, Signer, VerifyingKey};
use pkcs8::der::zeroize::Zeroizing;
use pkcs8::{LineEnding, SecretDocument};

use crate::note::{KeyKind, NoteError, NoteSignature, Vkey};

/// Bytes of a public key.
pub const PUBLIC_KEY_BYTES: usize = 32;
/// Bytes of the secret that a signing key is made from.
pub const SEED_BYTES: usize = 32;
/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;
/// Longest key file in bytes; an encrypted key has about 400.
pub const PEM_BYTES_MAX: usize = 16 << 10;
/// Most memory in bytes that opening an encrypted key may take.
const SCRYPT_BYTES_MAX: u128 = 1 << 30;
/// Most rounds that opening an encrypted key may take: some seconds.
const PBKDF2_ROUNDS_MAX: u32 = 10_000_000;

const PLAIN_LABEL: &str = "PRIVATE KEY";
const ENCRYPTED_LABEL: &str = "ENCRYPTED PRIVATE KEY";

/// A public Ed25519 key that only one secret can sign with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads a key as RFC 8032 §5.1.2 writes it.
    ///
    /// # Errors
    /// The bytes are no point of the curve, are another spelling of one, or are a point of
    /// small order, for which signatures can be made without any secret.
    pub fn from_bytes(bytes: &[u8; PUBLIC_KEY_BYTES]) -> Result<PublicKey, KeyError> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyError::NotAKey)?;
        if key.to_edwards().compress().as_bytes() != bytes {
            return Err(KeyError::NotCanonical);
        }
        if key.is_weak() {
            return Err(KeyError::Weak);
        }
        Ok(PublicKey(key))
    }

    /// Returns the 32 bytes of the key.
    pub fn to_bytes(&self) -> [u8; PUBLIC_KEY_BYTES] {
        self.0.to_bytes()
    }

    /// Returns whether `signature` is a signature of this key over `message`: 64 bytes, strictly
    /// verified (RFC 8032 §5.1.7, with points of small order and other spellings refused).
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match Signature::from_slice(signature) {
            Ok(signature) => self.0.verify_strict(message, &signature).is_ok(),
            Err(_) => false,
        }
    }
}

/// A secret Ed25519 key. Every copy is wiped when it is dropped.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// Makes a key from the randomness of the operating system.
    ///
    /// # Errors
    /// The system has none to give.
    pub fn generate() -> Result<SigningKey, KeyError> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        getrandom::fill(&mut *seed)
            .map_err(|error| KeyError::Randomness { reason: error.to_string() })?;
        Ok(SigningKey(ed25519_dalek::SigningKey::from_bytes(&seed)))
    }

    /// Returns the key that RFC 8032 §5.1.5 makes of 32 secret bytes.
    pub fn from_seed(seed: [u8; SEED_BYTES]) -> SigningKey {
        let seed = Zeroizing::new(seed);
        SigningKey(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Reads a key file: PKCS#8 as PEM (RFC 8410, RFC 5958), plain or encrypted (RFC 8018
    /// PBES2), as `openssl genpkey -algorithm ed25519` writes it, too.
    ///
    /// # Errors
    /// It is no such file, the password is wrong or missing, or one is given for a key that is
    /// not encrypted.
    pub fn from_pem(pem: &str, password: Option<&str>) -> Result<SigningKey, KeyError> {
        if pem.len() > PEM_BYTES_MAX {
            return Err(KeyError::FileTooLarge { bytes: pem.len() });
        }
        let (label, document) = SecretDocument::from_pem(pem)
            .map_err(|error| KeyError::NotPem { reason: error.to_string() })?;
        let opened = match (label, password) {
            (PLAIN_LABEL, None) => document,
            (PLAIN_LABEL, Some(_)) => return Err(KeyError::NotEncrypted),
            (ENCRYPTED_LABEL, Some(password)) => decrypt(document.as_bytes(), password)?,
            (ENCRYPTED_LABEL, None) => return Err(KeyError::PasswordNeeded),
            (label, _) => return Err(KeyError::Label { label: crate::text::excerpt(label) }),
        };
        let key = ed25519_dalek::SigningKey::from_pkcs8_der(opened.as_bytes())
            .map_err(|error| KeyError::NotEd25519 { reason: error.to_string() })?;
        Ok(SigningKey(key))
    }

    /// Writes the key as a PKCS#8 PEM file, encrypted where there is a password: scrypt and
    /// AES-256-CBC, with costs that `openssl pkey` accepts. Wiped when dropped.
    ///
    /// # Errors
    /// The password is empty, or the system has no randomness to give.
    pub fn to_pem(&self, password: Option<&str>) -> Result<Zeroizing<String>, KeyError> {
        // Without the public key in it, because OpenSSL 3.0 reads no other version.
        let pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let written = match password {
            None => pair.to_pkcs8_pem(LineEnding::LF),
            Some("") => return Err(KeyError::EmptyPassword),
            Some(password) => pair.to_pkcs8_encrypted_pem(password, LineEnding::LF),
        };
        written.map_err(|error| KeyError::NotWritten { reason: error.to_string() })
    }

    /// Returns the public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Returns what verifies the notes of a log of this name.
    ///
    /// # Errors
    /// The name cannot name a key.
    pub fn vkey(&self, name: &str) -> Result<Vkey, NoteError> {
        Vkey::new(name, KeyKind::Log, self.public())
    }

    /// Returns what verifies the cosignatures of a witness of this name.
    ///
    /// # Errors
    /// The name cannot name a key.
    pub fn cosigner_vkey(&self, name: &str) -> Result<Vkey, NoteError> {
        Vkey::new(name, KeyKind::Witness, self.public())
    }

    /// Signs `message` as it is. What is signed should begin with what it is, so that no
    /// signature can serve for anything else.
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message).to_bytes()
    }

    /// Signs the text of a note as the log `name`.
    ///
    /// # Errors
    /// The name cannot name a key.
    pub fn sign_note(&self, name: &str, text: &str) -> Result<NoteSignature, NoteError> {
        let vkey = self.vkey(name)?;
        let signature = self.sign(text.as_bytes()).to_vec();
        Ok(NoteSignature { name: name.to_owned(), key_id: vkey.key_id(), signature })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public()).finish_non_exhaustive()
    }
}

fn decrypt(der: &[u8], password: &str) -> Result<SecretDocument, KeyError> {
    let encrypted = pkcs8::EncryptedPrivateKeyInfoRef::try_from(der)
        .map_err(|error| KeyError::NotPem { reason: error.to_string() })?;
    refuse_costly(&encrypted.encryption_algorithm)?;
    encrypted.decrypt(password).map_err(|_| KeyError::WrongPassword)
}

/// Refuses a file that would take all memory or all day to open, whoever made it.
fn refuse_costly(scheme: &pkcs8::pkcs5::EncryptionScheme) -> Result<(), KeyError> {
    use pkcs8::pkcs5::pbes2::Kdf;
    let is_costly = match scheme.pbes2().map(|parameters| &parameters.kdf) {
        Some(Kdf::Scrypt(scrypt)) => {
            // RFC 7914 §2: 128 · r · N bytes for each of p runs.
            let cost = u128::from(scrypt.cost_parameter) * u128::from(scrypt.block_size) * 128;
            cost * u128::from(scrypt.parallelization) > SCRYPT_BYTES_MAX
        }
        Some(Kdf::Pbkdf2(pbkdf2)) => pbkdf2.iteration_count > PBKDF2_ROUNDS_MAX,
        _ => return Err(KeyError::Encryption),
    };
    if is_costly { Err(KeyError::TooCostly) } else { Ok(()) }
}

/// A key that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// Public bytes that are no point of the curve.
    NotAKey,
    /// Public bytes that are another spelling of a key.
    NotCanonical,
    /// A public key that anyone can sign for.
    Weak,
    /// The system gives no randomness.
    Randomness {
        /// What it says.
        reason: String,
    },
    /// A key file that is larger than any.
    FileTooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// A key file that is not PEM.
    NotPem {
        /// What is wrong.
        reason: String,
    },
    /// A PEM file of something else.
    Label {
        /// What it says it holds.
        label: String,
    },
    /// A private key of another kind, or a damaged one.
    NotEd25519 {
        /// What is wrong.
        reason: String,
    },
    /// An encrypted key and no password.
    PasswordNeeded,
    /// A password and no encrypted key.
    NotEncrypted,
    /// A password that does not open the key.
    WrongPassword,
    /// A password of no characters.
    EmptyPassword,
    /// A key encrypted in a way that this program does not read.
    Encryption,
    /// A key that takes too much to open.
    TooCostly,
    /// A key that could not be written out.
    NotWritten {
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::NotAKey => write!(f, "the public key is not an Ed25519 key"),
            KeyError::NotCanonical => {
                write!(f, "the public key is another spelling of an Ed25519 key")
            }
            KeyError::Weak => {
                write!(f, "the public key is weak: anyone can make signatures for it")
            }
            KeyError::Randomness { reason } => {
                write!(f, "the system gives no randomness: {reason}")
            }
            KeyError::FileTooLarge { bytes } => {
                write!(f, "a key file has {bytes} bytes, the most is {PEM_BYTES_MAX}")
            }
            KeyError::NotPem { reason } => write!(
                f,
                "this is not a key file in PEM form ({reason}): make one with `arena log keygen`"
            ),
            KeyError::Label { label } => write!(
                f,
                "a key file holds a `{label}`, expected `{PLAIN_LABEL}` or `{ENCRYPTED_LABEL}`"
            ),
            KeyError::NotEd25519 { reason } => write!(
                f,
                "a key file holds no Ed25519 key ({reason}): make one with `arena log keygen`"
            ),
            KeyError::PasswordNeeded => write!(f, "the key is encrypted: give its password"),
            KeyError::NotEncrypted => write!(f, "the key is not encrypted: give no password"),
            KeyError::WrongPassword => write!(f, "the password does not open the key"),
            KeyError::EmptyPassword => {
                write!(f, "the password is empty: give one, or none for a key in the clear")
            }
            KeyError::Encryption => write!(
                f,
                "the key is encrypted in a way that is not read here: use `openssl pkcs8 -topk8`"
            ),
            KeyError::TooCostly => {
                write!(f, "opening the key would take too much memory or time")
            }
            KeyError::NotWritten { reason } => write!(f, "cannot write out the key: {reason}"),
        }
    }
}

impl std::error::Error for KeyError {}
