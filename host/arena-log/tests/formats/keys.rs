//! Keys: their files, which others read and write too, and what they never say.

use arena_log::key::{KeyError, PublicKey, SigningKey};

use crate::sample::key;

const OPENSSL_PLAIN: &str = include_str!("../data/openssl-plain.pem");
const OPENSSL_PBKDF2: &str = include_str!("../data/openssl-pbkdf2.pem");
const OPENSSL_SCRYPT: &str = include_str!("../data/openssl-scrypt.pem");
const OPENSSL_PUBLIC: &str = "3a100977530707fb7cf5775f75b2b1bd02089747ff578a063cb2982aa813f071";
const PASSWORD: &str = "correct horse";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_seed_makes_the_key_and_signature_of_the_rfc() {
    // RFC 8032 §7.1, test 1.
    let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let mut bytes = [0; 32];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&seed[2 * index..2 * index + 2], 16).expect("hexadecimal");
    }
    let key = SigningKey::from_seed(bytes);
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(hex(&key.public().to_bytes()), public);
    let signature = key.sign(b"");
    let expected = concat!(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155",
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    );
    assert_eq!(hex(&signature), expected);
    assert!(key.public().verifies(b"", &signature));
    assert!(!key.public().verifies(b"x", &signature));
    assert!(!key.public().verifies(b"", &signature[..63]));
    assert!(!key.public().verifies(b"", &[]));
}

#[test]
fn key_files_of_openssl_are_read() {
    let plain = SigningKey::from_pem(OPENSSL_PLAIN, None).expect("OpenSSL wrote it");
    assert_eq!(hex(&plain.public().to_bytes()), OPENSSL_PUBLIC);
    for encrypted in [OPENSSL_PBKDF2, OPENSSL_SCRYPT] {
        let key = SigningKey::from_pem(encrypted, Some(PASSWORD)).expect("OpenSSL wrote it");
        assert_eq!(key.public(), plain.public());
    }
    // The same key has the same file.
    assert_eq!(*plain.to_pem(None).expect("a key can be written"), OPENSSL_PLAIN);
}

#[test]
fn key_files_read_back_with_the_right_password_only() {
    let key = key(9);
    let plain = key.to_pem(None).expect("a key can be written");
    let read = SigningKey::from_pem(&plain, None).expect("it was written here");
    assert_eq!(read.public(), key.public());
    let needless = SigningKey::from_pem(&plain, Some("x")).map(|_| ());
    assert_eq!(needless, Err(KeyError::NotEncrypted));

    let encrypted = key.to_pem(Some("pass word ü")).expect("a key can be written");
    assert!(encrypted.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"));
    let read = SigningKey::from_pem(&encrypted, Some("pass word ü")).expect("it is the password");
    assert_eq!(read.public(), key.public());
    let wrong = SigningKey::from_pem(&encrypted, Some("pass word u")).map(|_| ());
    assert_eq!(wrong, Err(KeyError::WrongPassword));
    let missing = SigningKey::from_pem(&encrypted, None).map(|_| ());
    assert_eq!(missing, Err(KeyError::PasswordNeeded));
    let again = key.to_pem(Some("pass word ü")).expect("a key can be written");
    assert_ne!(*again, *encrypted, "each file has its own salt");
    assert_eq!(key.to_pem(Some("")).map(|_| ()), Err(KeyError::EmptyPassword));
}

#[test]
fn what_is_no_key_file_is_refused_with_what_to_do() {
    let certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    // RFC 8410 has this one for X25519: the same shape, another algorithm.
    let other = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VuBCIEIMyvSUuJdW8e9PDV0/07OO6qdcxELMIXxIxEwFYn7R3F\n\
        -----END PRIVATE KEY-----\n";
    let huge = "x".repeat(1 << 20);
    let cut = &OPENSSL_PLAIN[..60];
    for (pem, words) in [
        ("", "arena log keygen"),
        ("not a key\n", "arena log keygen"),
        (cut, "arena log keygen"),
        (certificate, "`CERTIFICATE`"),
        (other, "no Ed25519 key"),
        (huge.as_str(), "1048576 bytes"),
    ] {
        let error = SigningKey::from_pem(pem, None).expect_err("it is no key").to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_key_file_that_would_take_all_memory_is_refused() {
    // The cost of scrypt is the four bytes after the salt: raise N from 2^14 to 2^30.
    use base64ct::{Base64, Encoding};
    let body: String = OPENSSL_SCRYPT.lines().filter(|line| !line.starts_with('-')).collect();
    let mut der = Base64::decode_vec(&body).expect("OpenSSL writes base64");
    let cost = der.windows(4).position(|bytes| bytes == [0x02, 0x02, 0x40, 0x00]);
    let cost = cost.expect("N is 16384");
    der.splice(cost..cost + 4, [0x02, 0x04, 0x40, 0x00, 0x00, 0x00]);
    // Each enclosing length grows by two.
    for length in [2, 4, 17, 19, 32] {
        der[length] += 2;
    }
    let lines: Vec<String> = Base64::encode_string(&der)
        .as_bytes()
        .chunks(64)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    let pem = format!(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\n{}\n-----END ENCRYPTED PRIVATE KEY-----\n",
        lines.join("\n")
    );
    let refused = SigningKey::from_pem(&pem, Some(PASSWORD)).map(|_| ());
    assert_eq!(refused, Err(KeyError::TooCostly));
}

#[test]
fn generated_keys_differ_and_no_key_shows_its_secret() {
    let (one, two) = (SigningKey::generate(), SigningKey::generate());
    let (one, two) = (one.expect("there is randomness"), two.expect("there is randomness"));
    assert_ne!(one.public(), two.public());
    let shown = format!("{:?}", key(0x5a));
    assert!(!shown.contains("5a5a5a") && !shown.contains("90, 90, 90"), "{shown}");
    assert!(shown.starts_with("SigningKey { public: "), "{shown}");
}

#[test]
fn a_public_key_reads_back() {
    let public = key(4).public();
    assert_eq!(PublicKey::from_bytes(&public.to_bytes()), Ok(public));
}
