//! Roots: published ones, and the frontier against the recursion of the RFC.

use arena_log::hash::Hash;
use arena_log::tree::{self, Frontier};

use crate::sample::Tree;

/// The entries and roots that implementations of RFC 6962 have shared since the first one.
const ENTRIES: [&[u8]; 8] = [
    b"",
    b"\x00",
    b"\x10",
    b"\x20\x21",
    b"\x30\x31",
    b"\x40\x41\x42\x43",
    b"\x50\x51\x52\x53\x54\x55\x56\x57",
    b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
];
const ROOTS: [&str; 9] = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

#[test]
fn the_tree_has_the_published_roots() {
    let tree = Tree::of_entries(ENTRIES.iter().map(|entry| entry.to_vec()));
    let mut frontier = Frontier::new();
    for (size, root) in ROOTS.iter().enumerate() {
        let root = Hash::from_hex(root).expect("a published root is a hash");
        assert_eq!(frontier.root(), root, "size {size}");
        assert_eq!(frontier.size(), size as u64);
        assert_eq!(tree.root_at(size), root, "size {size}");
        if let Some(leaf) = tree.leaves.get(size) {
            frontier.append(*leaf);
        }
    }
}

#[test]
fn the_frontier_is_the_recursion_at_every_size() {
    let tree = Tree::of_size(300);
    let mut frontier = Frontier::new();
    for size in 0..=300 {
        assert_eq!(frontier.root(), tree.root_at(size), "size {size}");
        assert_eq!(tree::root_of(&tree.leaves[..size]), tree.root_at(size), "size {size}");
        if size < 300 {
            frontier.append(tree.leaves[size]);
        }
    }
}

#[test]
fn a_frontier_taken_up_at_any_size_is_the_one_that_was_left() {
    let tree = Tree::of_size(70);
    let mut grown = Frontier::new();
    for size in 0..70 {
        let taken_up = Frontier::resume(size, &mut |node| Ok::<_, String>(tree.node(node)));
        assert_eq!(taken_up, Ok(grown.clone()), "size {size}");
        grown.append(tree.leaves[size as usize]);
    }
    let missing = Frontier::resume(5, &mut |node| Err(format!("no node {node:?}")));
    assert_eq!(missing, Err("no node Node { level: 2, index: 0 }".to_owned()));
}

#[test]
fn no_leaf_hashes_like_an_inner_node() {
    let (left, right) = (Hash::leaf(b"left"), Hash::leaf(b"right"));
    let forged = [&left.0[..], &right.0[..]].concat();
    assert_ne!(Hash::leaf(&forged), Hash::node(&left, &right));
    assert_ne!(Hash::of(&forged), Hash::node(&left, &right));
}

#[test]
fn a_hash_has_one_spelling_in_each_writing() {
    let hash = Hash::of(b"entry");
    let hex = hash.to_string();
    assert_eq!(Hash::from_hex(&hex), Some(hash));
    assert_eq!(format!("{hash:?}"), hex);
    assert_eq!(Hash::from_base64(&hash.to_base64()), Some(hash));
    for wrong in ["", &hex[1..], &hex.to_uppercase(), &format!("{hex}0"), &"é".repeat(32)] {
        assert_eq!(Hash::from_hex(wrong), None, "{wrong}");
    }
    // The last digit of 32 bytes in base64 carries two bits that mean nothing.
    let encoded = hash.to_base64();
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let spelled_so = digits
        .iter()
        .filter(|digit| {
            let other = format!("{}{}=", &encoded[..42], char::from(**digit));
            Hash::from_base64(&other) == Some(hash)
        })
        .count();
    assert_eq!(spelled_so, 1);
    for wrong in ["", &encoded[..43], &format!("{encoded}="), &format!("{encoded}\n"), "AAAA"] {
        assert_eq!(Hash::from_base64(wrong), None, "{wrong}");
    }
}
