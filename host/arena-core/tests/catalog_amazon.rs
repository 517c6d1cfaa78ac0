//! The importer of the AmazonHistoryPrice folder: on made-up files, and on the real ones.
//!
//! The real files are looked for in `ARENA_AMAZON_DIR`, else beside the checkout in
//! `shared/data/AmazonHistoryPrice`. Where they are missing, the tests of them say so.

use std::cmp::Ordering;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arena_core::catalog::{Budget, Catalog, CatalogError, amazon, draw_scenario, is_test_item};
use arena_core::config::{Split, TournamentConfig};
use arena_core::price::Price;
use arena_core::scenario::Item;
use arena_core::seed::Root;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One product; `changes` replace or add fields as raw JSON, an empty value removes one.
fn product(changes: &[(&str, &str)]) -> String {
    let mut fields = vec![
        ("title", "\"Lamp\""),
        ("category", "\"home\""),
        ("list_price", "\"$50.00\""),
        ("highest_price", "\"$60.95\""),
        ("lowest_price", "\"$29.99\""),
        ("description", "\"A lamp that shines.\""),
    ];
    for &(name, value) in changes {
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
    }
    fields.retain(|(_, value)| !value.is_empty());
    let fields: Vec<String> =
        fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{ {} }}", fields.join(", "))
}

fn import(files: &[(&str, &str)]) -> Result<Catalog, CatalogError> {
    let owned: Vec<(String, String)> =
        files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    amazon::import(&owned)
}

fn import_one(changes: &[(&str, &str)]) -> Result<Item, CatalogError> {
    let catalog = import(&[("home.json", &format!("[{}]", product(changes)))])?;
    Ok(catalog.entries.into_iter().next().expect("one product").item)
}

fn error_of(result: Result<impl std::fmt::Debug, CatalogError>) -> String {
    result.expect_err("the files are wrong").to_string()
}

#[test]
fn the_shown_price_is_the_higher_one_and_the_cost_the_lowest() {
    let catalog = import(&[("home.json", &format!("[{}]", product(&[])))]).expect("it is right");
    let entry = &catalog.entries[0];
    assert_eq!(catalog.name, "amazon-history-price");
    assert_eq!(entry.item.id, "home/0");
    assert_eq!((entry.item.list_price, entry.cost), (Price(6_095), Price(2_999)));
    assert_eq!(entry.budget, Budget::Factor);
    let listed = import_one(&[("list_price", "\"$1,060.95\"")]).expect("it is right");
    assert_eq!(listed.list_price, Price(106_095));
}

#[test]
fn files_are_taken_in_the_order_of_their_names() {
    let file = |title: &str| format!("[{}]", product(&[("title", title)]));
    let [a, b] = [file("\"A\""), file("\"B\"")];
    let forward = import(&[("a.json", &a), ("b.json", &b)]).expect("it is right");
    let backward = import(&[("b.json", &b), ("a.json", &a)]).expect("it is right");
    assert_eq!(forward.sha256(), backward.sha256());
    let ids: Vec<&str> = forward.entries.iter().map(|entry| entry.item.id.as_str()).collect();
    assert_eq!(ids, ["a/0", "b/0"]);
}

#[test]
fn features_stand_in_for_a_description_that_says_nothing() {
    let features = ("features", "\"Bright. Small.\"");
    for (description, expected) in [
        ("\"none\"", "Bright. Small."),
        ("\"éééé\"", "Bright. Small."),
        ("\"lamps\"", "lamps"),
        ("", "Bright. Small."),
    ] {
        let item = import_one(&[("description", description), features]).expect("it is right");
        assert_eq!(item.description, expected, "{description}");
    }
    let item = import_one(&[("description", "\"none\"")]).expect("it is right");
    assert_eq!(item.description, "none", "there are no features");
    let item = import_one(&[("description", "")]).expect("it is right");
    assert_eq!(item.description, "");
}

#[test]
fn texts_are_cut_at_characters_and_lose_control_characters() {
    let title = format!("\"x{}\"", "é".repeat(600));
    let item = import_one(&[("title", &title)]).expect("it is right");
    assert_eq!(item.title.len(), 1_023, "1,024 bytes would end within a character");
    let item = import_one(&[("title", r#""a\u001b[31m\r\nb\u0085c""#)]).expect("it is right");
    assert_eq!(item.title, "a [31m  b c");
    let item = import_one(&[("description", r#""one\r\ntwo\u0000""#)]).expect("it is right");
    assert_eq!(item.description, "one \ntwo ", "line ends of descriptions stay");
}

#[test]
fn a_wrong_field_is_named_with_its_file_and_place() {
    for (changes, expected) in [
        (("title", ""), "field `title`: is missing"),
        (("title", "\" \""), "field `title`: is empty"),
        (("title", "7"), "field `title`: is not a string"),
        (("title", "\"A\", \"title\": \"B\""), "field `title`: is there twice"),
        (("category", ""), "field `category`: is missing"),
        (("badge", "null"), "field `badge`: is not a string"),
        (("lowest_price", ""), "field `lowest_price`: is missing"),
        (("lowest_price", "29.99"), "field `lowest_price`: is not a string"),
        (
            ("lowest_price", "\"$-29.99\""),
            "field `lowest_price`: `$-29.99` is not a price: not an amount in dollars",
        ),
        (("lowest_price", "\"$0.00\""), "field `lowest_price`: `$0.00` is not a positive price"),
        (
            ("lowest_price", "\"$60.96\""),
            "field `lowest_price`: `$60.96` is above the shown price `$60.95`",
        ),
        (
            ("list_price", "\"\\u001b[2J\""),
            "field `list_price`: `\\u{1b}[2J` is not a price: not an amount in dollars",
        ),
        (
            ("highest_price", "\"$10,000,000.01\""),
            "field `highest_price`: `$10000000.01` is above `$10000000.00`",
        ),
    ] {
        let right = product(&[("title", "\"first\"")]);
        let text = format!("[{right}, {}]", product(&[changes]));
        let error = error_of(import(&[("home.json", &text)]));
        assert_eq!(error, format!("`home.json`, item 1, {expected}"));
    }
}

#[test]
fn the_same_title_twice_is_refused() {
    let one = format!("[{}]", product(&[]));
    let error = error_of(import(&[("a.json", &one), ("b.json", &one)]));
    assert_eq!(error, "`b.json`, item 0, field `title`: is also the title of `a/0`");
}

#[test]
fn long_titles_that_differ_only_beyond_the_limit_are_two_products() {
    let [one, two] = ["a", "b"].map(|end| {
        let title = format!("\"{}{end}\"", "x".repeat(Item::TITLE_BYTES_MAX));
        format!("[{}]", product(&[("title", &title)]))
    });
    let catalog = import(&[("a.json", &one), ("b.json", &two)]).expect("they are two");
    assert_eq!(catalog.entries.len(), 2);
}

#[test]
fn broken_json_is_named_with_its_line() {
    for (text, expected) in [
        ("", "line 1, column 0: EOF while parsing a value"),
        ("[\n{ \"title\": }\n]", "line 2, column 12: expected value"),
        ("{}", "line 1, column 0: invalid type: map, expected a sequence"),
        ("[1]", "line 1, column 2: invalid type: integer `1`, expected an object"),
        ("[] []", "line 1, column 4: trailing characters"),
        ("[{\"title\": \"\\ud800\"}]", "line 1, column 19: unexpected end of hex escape"),
    ] {
        let error = error_of(import(&[("home.json", text)]));
        assert_eq!(error, format!("`home.json`, {expected}"), "{text}");
    }
    let deep = format!("[{}", "[".repeat(100_000));
    assert!(error_of(import(&[("home.json", &deep)])).contains("expected an object"));
    let deep = format!("[{{\"title\": {}", "[".repeat(100_000));
    assert!(error_of(import(&[("home.json", &deep)])).contains("recursion limit exceeded"));
}

#[test]
fn files_that_cannot_name_items_are_refused() {
    let text = format!("[{}]", product(&[]));
    for name in ["", ".json", "home.txt", "a b.json", "../a.json", "é.json", "home.json.json"] {
        let error = error_of(import(&[(name, &text)]));
        assert!(error.contains("cannot name items"), "{name}: {error}");
    }
    let long = format!("{}.json", "x".repeat(60));
    assert!(error_of(import(&[(&long, &text)])).contains("cannot name items"));
    assert!(import(&[(&long[1..], &text)]).is_ok());
}

#[test]
fn too_much_and_nothing_are_refused() {
    let text = format!("[{}]", product(&[]));
    assert_eq!(error_of(import(&[])), "there is no item to play");
    assert_eq!(error_of(import(&[("a.json", "[]")])), "there is no item to play");
    let twice = error_of(import(&[("a.json", &text), ("a.json", &text)]));
    assert_eq!(twice, "`a.json` is there twice");
    let huge = " ".repeat(amazon::FILE_BYTES_MAX + 1);
    let error = error_of(import(&[("a.json", &huge)]));
    assert_eq!(error, "`a.json` has `16777217` bytes, at most `16777216` are read");
    let files: Vec<(String, String)> =
        (0..=amazon::FILES_MAX).map(|number| (format!("{number}.json"), text.clone())).collect();
    let error = error_of(amazon::import(&files));
    assert_eq!(error, "`1001` files, a catalog has at most `1000`");
}

proptest! {
    #[test]
    fn any_text_gives_a_catalog_or_an_error(
        text in "[ -~\n]{0,60}",
        place in 0_usize..200,
        new in "[ -~]{0,4}",
    ) {
        let _ = import(&[("a.json", &text)]);
        let mut damaged = format!("[{}]", product(&[]));
        damaged.replace_range(place.min(damaged.len())..(place + 3).min(damaged.len()), &new);
        match import(&[("a.json", &damaged)]) {
            Ok(catalog) => prop_assert_eq!(catalog.entries.len(), 1),
            Err(error) => prop_assert!(error.to_string().starts_with("`a.json`"), "{error}"),
        }
    }
}

/// Reads the real files, or says that they are not there.
fn real_catalog() -> Option<Catalog> {
    let beside =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/AmazonHistoryPrice");
    let folder = std::env::var_os("ARENA_AMAZON_DIR").map_or(beside, PathBuf::from);
    let Ok(listing) = fs::read_dir(&folder) else {
        // The macros' output is kept back while a test passes; a skipped one must be seen.
        writeln!(io::stderr(), "SKIPPED: no products at `{}`", folder.display())
            .expect("standard error is open");
        return None;
    };
    let mut files = Vec::new();
    for entry in listing {
        let path = entry.expect("the folder is readable").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path.file_name().expect("a file").to_str().expect("a plain name");
            let text = fs::read_to_string(&path).expect("the file is readable");
            files.push((name.to_owned(), text));
        }
    }
    Some(amazon::import(&files).unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn the_real_products_are_feasible_as_often_as_published() {
    let Some(catalog) = real_catalog() else {
        return;
    };
    assert_eq!(catalog.entries.len(), 930);
    for (factor_milli, expected) in
        [(400, 276), (500, 448), (600, 641), (700, 782), (800, 886), (900, 920), (1_000, 930)]
    {
        let count = |room: Ordering| {
            let rooms = catalog.entries.iter().map(|entry| {
                entry.budget.at_factor(entry.item.list_price, factor_milli).cmp(&entry.cost)
            });
            rooms.filter(|&found| found == room).count()
        };
        assert_eq!(count(Ordering::Greater), expected, "at {factor_milli} thousandths");
        if factor_milli == 800 {
            assert_eq!(count(Ordering::Less), 44);
        }
    }
}

#[test]
fn the_scenarios_that_are_played_are_feasible_as_often_as_published() {
    let Some(catalog) = real_catalog() else {
        return;
    };
    let text = "name = 'case'\nself_play = true\n[rules]\nset = 'amazon-history-price'\n\
                [catalog]\nkind = 'amazon-history-price'\nfolder = 'x'\n\
                [[agents]]\nname = 'a'\ncomponent = 'builtin:a'\n";
    let config = TournamentConfig::parse(text).expect("the case is a tournament");
    let mut counts = [0; 3];
    for index in 0..930 {
        let scenario = draw_scenario(&config, &catalog, Root::Seed(1), index, 0);
        counts[(scenario.budget.cmp(&scenario.cost) as i8 + 1) as usize] += 1;
    }
    assert_eq!(counts, [44, 0, 886]);
}

#[test]
fn sample_rows_have_the_published_prices() {
    let Some(catalog) = real_catalog() else {
        return;
    };
    for (id, shown, budget, cost) in [
        ("automotive/0", 112_350, 89_880, 79_500),
        ("electronics/57", 29_999, 24_000, 24_800),
        ("other/66", 6_095, 4_876, 2_999),
    ] {
        let found = catalog.entries.iter().find(|entry| entry.item.id == id);
        let entry = found.unwrap_or_else(|| panic!("no product {id}"));
        assert_eq!(entry.item.list_price, Price(shown), "{id}");
        assert_eq!(entry.budget.at_factor(entry.item.list_price, 800), Price(budget), "{id}");
        assert_eq!(entry.cost, Price(cost), "{id}");
    }
}

/// The published split: SHA-256 over the ids of the test part in the catalog's order, each
/// followed by a line end.
#[test]
fn the_split_of_the_real_products_is_the_published_one() {
    let Some(catalog) = real_catalog() else {
        return;
    };
    let test = catalog.select(Split::Test, None, Root::Seed(0)).expect("there are some");
    let train = catalog.select(Split::Train, None, Root::Seed(0)).expect("there are some");
    assert_eq!((train.entries.len(), test.entries.len()), (801, 129));
    assert!(test.entries.iter().all(|entry| is_test_item(&entry.item.id)));
    let lines: String = test.entries.iter().map(|entry| format!("{}\n", entry.item.id)).collect();
    assert_eq!(
        hex(&Sha256::digest(lines.as_bytes())),
        "e6f04f9996ec595f4a7e147eac6c9820ec1537d02e46badb7399ac5cbceaa477"
    );
}

#[test]
fn the_real_catalog_never_changes() {
    let Some(catalog) = real_catalog() else {
        return;
    };
    assert_eq!(
        hex(&catalog.sha256()),
        "d6e1794e405912e0d73bf5fd2d34a512bb3103303c42cdd81f07ce7a355b3efe"
    );
}
