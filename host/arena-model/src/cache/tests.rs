use proptest::prelude::*;

use super::*;

/// Every token is the sum of those before it: what a block must hold at each place.
fn content(version: u64, tokens: &[u32]) -> u64 {
    tokens.iter().fold(version + 1, |sum, &token| {
        sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(token) + 1)
    })
}

/// A pool whose rows hold what they were computed from, with the sequences that use it.
struct Pool {
    cache: PrefixCache,
    rows: Vec<[u64; BLOCK_TOKENS]>,
    live: Vec<Live>,
    step: u64,
}

struct Live {
    version: u64,
    tokens: Vec<u32>,
    computed: usize,
    lease: Lease,
}

impl Pool {
    fn new(blocks: usize) -> Pool {
        let rows = vec![[0; BLOCK_TOKENS]; blocks];
        Pool { cache: PrefixCache::new(blocks), rows, live: Vec::new(), step: 1 }
    }

    fn begin(&mut self, version: u64, tokens: Vec<u32>) -> usize {
        let lease = self.cache.open(version);
        self.live.push(Live { version, tokens, computed: 0, lease });
        self.reuse(self.live.len() - 1)
    }

    fn reuse(&mut self, index: usize) -> usize {
        let live = &mut self.live[index];
        let computed = self.cache.take_shared(&mut live.lease, &live.tokens, live.computed);
        live.computed = computed;
        let (lease, tokens) = (&mut live.lease, &live.tokens);
        if let Some(copy) = self.cache.take_part(lease, tokens, computed, self.step) {
            assert!(copy.rows > 0 && copy.from != copy.to, "{copy:?}");
            for row in 0..copy.rows {
                self.rows[copy.to.0 as usize][row] = self.rows[copy.from.0 as usize][row];
            }
            live.computed += copy.rows;
        }
        assert!(live.computed < live.tokens.len(), "something is left to compute");
        live.computed
    }

    /// Computes up to `count` rows of one sequence, in a step of its own.
    fn compute(&mut self, index: usize, count: usize) -> bool {
        let live = &mut self.live[index];
        let end = (live.computed + count).min(live.tokens.len());
        if !self.cache.reserve(&mut live.lease, end) {
            return false;
        }
        self.cache.publish(&mut live.lease, &live.tokens[..end], live.computed, self.step);
        for position in live.computed..end {
            let block = live.lease.table()[position / BLOCK_TOKENS];
            self.rows[block.0 as usize][position % BLOCK_TOKENS] =
                content(live.version, &live.tokens[..=position]);
        }
        live.computed = end;
        self.step += 1;
        true
    }

    fn end(&mut self, index: usize) {
        let live = self.live.swap_remove(index);
        self.cache.close(live.lease, &live.tokens[..live.computed]);
    }

    /// Counts everything again, the plain way.
    fn check(&self) {
        for live in &self.live {
            for position in 0..live.computed {
                let block = live.lease.table()[position / BLOCK_TOKENS];
                let expected = content(live.version, &live.tokens[..=position]);
                assert_eq!(self.rows[block.0 as usize][position % BLOCK_TOKENS], expected);
            }
        }
        let mut seen = vec![0; self.cache.block_count];
        self.cache.free.iter().for_each(|block| seen[block.0 as usize] += 1);
        let mut idle = 0;
        for (index, node) in self.cache.nodes.iter().enumerate() {
            let Some(node) = node else { continue };
            seen[node.block.0 as usize] += 1;
            let is_user = |live: &&Live| live.lease.path.contains(&index);
            assert_eq!(node.users, self.live.iter().filter(is_user).count());
            let is_child = |place: &&Place| place.parent == Some(index);
            assert_eq!(node.children, self.cache.places.keys().filter(is_child).count());
            idle += usize::from(node.users == 0);
            let is_leaf = node.users == 0 && node.children == 0;
            assert_eq!(self.cache.leaves.contains(&(node.stamp, index)), is_leaf);
        }
        assert_eq!(self.cache.idle, idle);
        for live in &self.live {
            let own = &live.lease.table[live.lease.path.len()..];
            own.iter().for_each(|block| seen[block.0 as usize] += 1);
        }
        assert!(seen.iter().all(|&count| count == 1), "each block is in one place: {seen:?}");
    }
}

fn counted(range: std::ops::Range<u32>) -> Vec<u32> {
    range.collect()
}

#[test]
fn a_growing_dialogue_computes_only_what_is_new() {
    let mut pool = Pool::new(8);
    assert_eq!(pool.begin(0, counted(0..40)), 0);
    assert!(pool.compute(0, 40));
    pool.end(0);
    pool.check();
    // Two full blocks are shared, and eight rows of the third are copied.
    assert_eq!(pool.begin(0, counted(0..60)), 40);
    assert!(pool.compute(0, 20));
    pool.end(0);
    pool.check();
    // The last token is always computed, since its logits are wanted.
    assert_eq!(pool.begin(0, counted(0..60)), 59);
    pool.check();
}

#[test]
fn a_block_that_matches_in_part_is_copied_up_to_the_first_difference() {
    let mut pool = Pool::new(8);
    pool.begin(0, counted(0..32));
    assert!(pool.compute(0, 32));
    let mut other = counted(0..32);
    other[20] = 99;
    assert_eq!(pool.begin(0, other), 20);
    assert!(pool.compute(1, 12));
    pool.check();
}

#[test]
fn versions_of_an_adapter_share_nothing() {
    let mut pool = Pool::new(8);
    pool.begin(0, counted(0..32));
    assert!(pool.compute(0, 32));
    assert_eq!(pool.begin(1, counted(0..32)), 0);
    pool.end(1);
    pool.end(0);
    pool.cache.forget(0);
    assert_eq!(pool.cache.free.len(), 8);
    pool.check();
}

#[test]
fn sequences_of_one_step_share_the_blocks_that_it_fills() {
    let mut cache = PrefixCache::new(8);
    let tokens = counted(0..40);
    let mut first = cache.open(0);
    assert!(cache.reserve(&mut first, 40));
    cache.publish(&mut first, &tokens, 0, 1);
    let mut second = cache.open(0);
    assert_eq!(cache.take_shared(&mut second, &tokens, 0), 32);
    assert_eq!(second.table(), &first.table()[..2]);
    // What is being computed cannot be copied yet.
    let mut third = cache.open(0);
    assert_eq!(cache.take_part(&mut third, &[0, 1, 9], 0, 1), None);
    let copy = cache.take_part(&mut third, &[0, 1, 9], 0, 2).expect("the step is over");
    assert_eq!((copy.from, copy.rows), (first.table()[0], 2));
}

#[test]
fn equal_blocks_of_one_step_become_one_in_the_next() {
    let mut cache = PrefixCache::new(8);
    let tokens = counted(0..20);
    let (mut first, mut second) = (cache.open(0), cache.open(0));
    assert!(cache.reserve(&mut first, 20) && cache.reserve(&mut second, 20));
    cache.publish(&mut first, &tokens, 0, 1);
    cache.publish(&mut second, &tokens, 0, 1);
    assert_ne!(first.table()[0], second.table()[0], "both are written in this step");
    cache.publish(&mut second, &tokens, 20, 2);
    assert_eq!(first.table()[0], second.table()[0]);
    assert_eq!(cache.available_count(), 8 - 3);
}

#[test]
fn what_was_used_longest_ago_goes_first_and_leaves_before_what_they_stand_on() {
    let mut pool = Pool::new(4);
    for start in [100, 200] {
        pool.begin(0, counted(start..start + 32));
        assert!(pool.compute(0, 32));
        pool.end(0);
    }
    pool.begin(0, counted(300..316));
    assert!(pool.compute(0, 16));
    pool.end(0);
    pool.check();
    assert_eq!(pool.begin(0, counted(200..233)), 32);
    assert_eq!(pool.begin(0, counted(100..133)), 16);
}

#[test]
fn a_full_pool_refuses_and_changes_nothing() {
    let mut pool = Pool::new(3);
    pool.begin(0, counted(0..33));
    assert!(pool.compute(0, 33));
    pool.begin(0, counted(50..90));
    assert!(!pool.compute(1, 1));
    pool.check();
    pool.end(0);
    assert!(pool.compute(0, 40));
    pool.check();
}

#[derive(Clone, Debug)]
enum Action {
    Begin { version: u64, tokens: Vec<u32> },
    Extend { pick: usize, tokens: Vec<u32> },
    Compute { pick: usize, count: usize },
    Reuse { pick: usize },
    End { pick: usize },
    Forget { version: u64 },
}

fn action() -> impl Strategy<Value = Action> {
    // Few different tokens in long runs, so that many beginnings are equal.
    let run = |most| {
        prop::collection::vec((0..2_u32, 1..14_usize), 1..most).prop_map(|runs| {
            runs.into_iter().flat_map(|(token, count)| vec![token; count]).collect::<Vec<u32>>()
        })
    };
    prop_oneof![
        3 => (0..2_u64, run(6)).prop_map(|(version, tokens)| Action::Begin { version, tokens }),
        2 => (0..8_usize, run(3)).prop_map(|(pick, tokens)| Action::Extend { pick, tokens }),
        6 => (0..8_usize, 1..50_usize).prop_map(|(pick, count)| Action::Compute { pick, count }),
        2 => (0..8_usize).prop_map(|pick| Action::Reuse { pick }),
        2 => (0..8_usize).prop_map(|pick| Action::End { pick }),
        1 => (0..2_u64).prop_map(|version| Action::Forget { version }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_row_holds_what_its_sequence_computed(
        blocks in 6_usize..20,
        actions in prop::collection::vec(action(), 1..60),
    ) {
        let mut pool = Pool::new(blocks);
        for action in actions {
            let count = pool.live.len();
            let chosen = |pick: usize| (count > 0).then(|| pick % count);
            match action {
                Action::Begin { version, tokens } => {
                    pool.begin(version, tokens);
                }
                Action::Extend { pick, tokens } => {
                    if let Some(index) = chosen(pick) {
                        pool.live[index].tokens.extend(tokens);
                    }
                }
                Action::Compute { pick, count } => {
                    if let Some(index) = chosen(pick) {
                        pool.compute(index, count);
                    }
                }
                Action::Reuse { pick } => {
                    let left = |index: &usize| {
                        pool.live[*index].computed < pool.live[*index].tokens.len()
                    };
                    if let Some(index) = chosen(pick).filter(left) {
                        pool.reuse(index);
                    }
                }
                Action::End { pick } => {
                    if let Some(index) = chosen(pick) {
                        pool.end(index);
                    }
                }
                Action::Forget { version } => pool.cache.forget(version),
            }
            pool.check();
        }
        while !pool.live.is_empty() {
            pool.end(0);
            pool.check();
        }
        prop_assert_eq!(pool.cache.available_count(), blocks);
    }
}
