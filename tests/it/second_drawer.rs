//! What is drawn can be drawn again from the page that describes the format.
//!
//! It is `tests/second_drawer.py`, which shares no code with the programs that draw; Python 3
//! must be there.

use std::process::Command;

use arena_core::catalog::{Budget, Catalog, CatalogEntry, draw_scenario, synthetic, uniform};
use arena_core::config::{Split, TournamentConfig};
use arena_core::hexadecimal::hex;
use arena_core::price::Price;
use arena_core::scenario::{Item, Role};
use arena_core::schedule::Schedule;
use arena_core::seed::Root;
use serde_json::{Value, json};

use crate::kit::root;

fn drawn_again(request: &Value) -> String {
    // `-B`: nothing is written beside the script.
    let output = Command::new("python3")
        .arg("-B")
        .arg(root().join("tests/second_drawer.py"))
        .arg(root().join("host/arena-log/FORMAT.md"))
        .arg(request.to_string())
        .output()
        .expect("Python 3 is needed for these tests");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Roots as the request names them, and as they are.
fn roots() -> [(Value, Root); 2] {
    let master = std::array::from_fn(|place| place as u8 * 3);
    [(json!(7), Root::Seed(7)), (json!(hex(&master)), Root::Master(master))]
}

#[test]
fn generated_items_come_out_again() {
    let splits = [(Split::All, "all"), (Split::Train, "train"), (Split::Test, "test")];
    for (named, root) in roots() {
        for (split, split_name) in splits {
            for sample in [None, Some(9)] {
                let made = synthetic::generate(200, 150, root).select(split, sample, root);
                let request = json!({ "what": "items", "kind": "synthetic", "items": 200,
                    "infeasible": 150, "root": named, "split": split_name, "sample": sample });
                let wanted = hex(&made.expect("enough items").sha256());
                assert_eq!(drawn_again(&request).trim(), wanted, "{request}");
                let (low, high) = (Price(1_005), Price(11_000));
                let made = uniform::generate(200, low, high, root).select(split, sample, root);
                let request = json!({ "what": "items", "kind": "uniform", "items": 200,
                    "low": 1_005, "high": 11_000, "root": named, "split": split_name,
                    "sample": sample });
                let wanted = hex(&made.expect("enough items").sha256());
                assert_eq!(drawn_again(&request).trim(), wanted, "{request}");
            }
        }
    }
}

/// A tournament of so many agents, those with these numbers candidates.
fn config(agents: usize, candidates: Option<&[usize]>, rest: &str) -> TournamentConfig {
    let schedule = if candidates.is_some() { "gauntlet" } else { "round-robin" };
    let mut file = format!("name = \"t\"\nschedule = \"{schedule}\"\nrepetitions = 2\n{rest}\n");
    for agent in 0..agents {
        file += &format!("[[agents]]\nname = \"a{agent}\"\ncomponent = \"builtin:linear\"\n");
        if candidates.is_some_and(|candidates| candidates.contains(&agent)) {
            file += "candidate = true\n";
        }
    }
    TournamentConfig::parse(&file).unwrap_or_else(|error| panic!("{error:?}\n{file}"))
}

#[test]
fn pairs_come_out_again() {
    let fields: [(usize, Option<&[usize]>); 6] =
        [(2, None), (3, None), (6, None), (7, None), (5, Some(&[1, 3])), (4, Some(&[2]))];
    for (agents, candidates) in fields {
        let both = (false, "both");
        let one_sided = [(false, "candidates-buy"), (false, "candidates-sell")];
        let one_sided = one_sided.into_iter().filter(|_| candidates.is_some());
        for (self_play, roles) in [both, (true, "both")].into_iter().chain(one_sided) {
            let rest = format!(
                "self_play = {self_play}\nroles = \"{roles}\"\n\
                 [catalog]\nkind = \"synthetic\"\nitems = 3"
            );
            let schedule = Schedule::new(&config(agents, candidates, &rest), 3).expect("sound");
            let plans = (0..schedule.pair_count()).map(|index| schedule.pair(index));
            let lines = plans.map(|plan| {
                let [first, second] = plan.agents;
                format!("{first} {second} {} {}\n", plan.item_index, plan.repetition)
            });
            let request = json!({ "what": "pairs", "agents": agents, "candidates": candidates,
                "self_play": self_play, "sell": roles == "candidates-sell", "items": 3,
                "repetitions": 2 });
            assert_eq!(drawn_again(&request), lines.collect::<String>(), "{request}");
        }
    }
}

/// Items whose budgets are left to the scenario, as imported ones are.
fn imported(prices: &[u32]) -> Catalog {
    let entry = |price: &u32| CatalogEntry {
        item: Item {
            id: format!("toys/{price}"),
            title: "a kite".to_owned(),
            category: "toys".to_owned(),
            description: "It flies.".to_owned(),
            list_price: Price(*price),
        },
        cost: Price(1),
        budget: Budget::Factor,
    };
    Catalog { name: "amazon-history-price".to_owned(), entries: prices.iter().map(entry).collect() }
}

#[test]
fn scenarios_come_out_again() {
    let prices: Vec<u32> = (0..40).map(|place| 999 + 1_237 * place).collect();
    let (geometric, fixed) = ("{ mean_turns = 9, max_turns = 20 }", "{ turns = 15 }");
    let amazon = "set = \"amazon-history-price\"";
    let given = |opener: &str, horizon: &str| format!("opener = {opener:?}\nhorizon = {horizon}");
    let cases = [
        (given("drawn", geometric), "[0.5, 1.25]", [500, 1_250], None, [9, 20]),
        (given("seller", geometric), "0.7", [700, 700], Some("seller"), [9, 20]),
        (given("buyer", fixed), "[0.6, 0.9]", [600, 900], Some("buyer"), [0, 15]),
        (String::new(), "", [800, 800], None, [0, 20]),
        (amazon.to_owned(), "", [800, 800], Some("buyer"), [0, 12]),
    ];
    let cases = cases.into_iter().flat_map(|case| [(1, case.clone()), (2, case)]);
    for (group, (rules, budgets, factor, opener, horizon)) in cases {
        let budgets = match budgets {
            "" => String::new(),
            given => format!("budget_factor = {given}"),
        };
        let rest = format!(
            "scenario_group = {group}\n[rules]\n{rules}\n\
             [catalog]\nkind = \"amazon-history-price\"\nfolder = \"f\"\n{budgets}"
        );
        let (config, catalog) = (config(2, None, &rest), imported(&prices));
        for (named, root) in roots() {
            let slots = (0..40).flat_map(|item| [(item, 0), (item, 1)]);
            let lines = slots.map(|(item, repetition)| {
                let drawn = draw_scenario(&config, &catalog, root, item, repetition);
                let opener = if drawn.opener == Role::Buyer { "buyer" } else { "seller" };
                let hidden = if drawn.horizon.hidden { "hidden" } else { "known" };
                let turns = drawn.horizon.turn_limit;
                format!("{} {opener} {turns} {hidden}\n", drawn.budget.cents())
            });
            let request = json!({ "what": "scenarios", "prices": prices, "repetitions": 2,
                "root": named, "group": group, "factor": factor, "opener": opener, "horizon": horizon });
            assert_eq!(drawn_again(&request), lines.collect::<String>(), "{request}");
        }
    }
}
