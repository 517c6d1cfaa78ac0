//! What a reader should know before trusting a report.

use crate::announcement::Announcement;
use crate::scenario::Role;
use crate::statistics::Tally;
use crate::statistics::bootstrap::BLOCKS_TRUSTED_MIN;
use crate::statistics::inference::Rating;
use crate::statistics::metric::Metric;

/// Returns all warnings, as whole clauses without a full stop.
pub fn collect(announcement: &Announcement, tally: &Tally, rating: &Rating) -> Vec<String> {
    let mut found = entered_twice(announcement);
    found.extend(without_matches(announcement, tally));
    found.extend(few_blocks(tally));
    found.extend(one_sided(tally));
    if rating.separate_fields > 1 {
        let fields = rating.separate_fields;
        found.push(format!(
            "the agents form {fields} fields that never met each other; ratings compare only \
             within a field"
        ));
    }
    found
}

fn entered_twice(announcement: &Announcement) -> Vec<String> {
    let mut found = Vec::new();
    for (place, entry) in announcement.agents.iter().enumerate() {
        let earlier = announcement.agents[..place].iter().find(|other| {
            other.component_sha256 == entry.component_sha256 && other.params == entry.params
        });
        if let Some(other) = earlier {
            found.push(format!(
                "`{}` and `{}` are the same component with the same parameters",
                other.name, entry.name
            ));
        }
    }
    found
}

fn without_matches(announcement: &Announcement, tally: &Tally) -> Vec<String> {
    let agents = announcement.agents.iter().zip(tally.agents());
    let idle = agents.filter(|(_, sums)| sums.both_roles().get(Metric::Reward).is_none());
    idle.map(|(entry, _)| format!("`{}` has no match", entry.name)).collect()
}

fn one_sided(tally: &Tally) -> Option<String> {
    let verb = match tally.roles().of_candidates()? {
        Role::Buyer => "buy",
        Role::Seller => "sell",
    };
    Some(format!(
        "candidates only {verb}: they stand first, and only agents of one side are compared, as \
         what a side is worth cannot be told from who sits on it"
    ))
}

fn few_blocks(tally: &Tally) -> Option<String> {
    match tally.blocks_present() {
        0 => None,
        1 => Some("all pairs are on one item, so there are no intervals".to_owned()),
        blocks if blocks < BLOCKS_TRUSTED_MIN => Some(format!(
            "the pairs are on {blocks} items only; intervals are too narrow below \
             {BLOCKS_TRUSTED_MIN}"
        )),
        _ => None,
    }
}
