//! The tournament files of a run: each a pure function of the experiment and the occasion.
//!
//! Keys are written in a fixed order, so that the same experiment gives the same bytes.
//!
//! Not here: playing them (`arena`).

use arena_core::hexadecimal::hex;
use arena_core::scenario::Role;
use arena_core::seed::{Root, Stream};
use toml::{Table, Value};

use super::{AgentConfig, Experiment, LEARNER, Mode, POLICY, PolicySource};

/// What a tournament of a run is played for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Demonstrations of a teacher.
    WarmStart,
    /// What a step learns from.
    Step {
        /// From 1.
        step: u32,
    },
    /// How good the policy is.
    Evaluation {
        /// After which step; 0 is before the first.
        step: u32,
        /// How the policy answers.
        mode: Mode,
    },
}

impl Occasion {
    fn name(self, experiment: &str) -> String {
        match self {
            Occasion::WarmStart => format!("{experiment}-warm-start"),
            Occasion::Step { step } => format!("{experiment}-{step:06}"),
            Occasion::Evaluation { step, mode } => {
                format!("{experiment}-{step:06}-{}", mode.name())
            }
        }
    }

    /// Returns the folder of the tournament's log within a run.
    pub fn folder(self) -> String {
        match self {
            Occasion::WarmStart => "warm-start".to_owned(),
            Occasion::Step { step } => format!("steps/{step:06}"),
            Occasion::Evaluation { step, mode } => {
                format!("evaluations/{step:06}-{}", mode.name())
            }
        }
    }

    /// Returns the seed of the tournament. Evaluations share theirs, so that they differ by the
    /// policy alone.
    fn seed(self, root: u64) -> u64 {
        let (purpose, address) = match self {
            Occasion::WarmStart => ("train-warm-start", vec![]),
            Occasion::Step { step } => ("train-step", vec![u64::from(step)]),
            Occasion::Evaluation { .. } => ("train-evaluation", vec![]),
        };
        // TOML's whole numbers have 63 bits.
        Stream::derive(Root::Seed(root), purpose, &address).bits() >> 1
    }
}

impl Experiment {
    /// Returns the text of the tournament file for an occasion. `policy` is the hash that names
    /// the policy that plays; a teacher's demonstrations are no policy's.
    ///
    /// # Panics
    /// If there is no warm start or no evaluation and it is asked for.
    pub fn tournament(&self, occasion: Occasion, policy: [u8; 32]) -> String {
        let mut text = self.heading(occasion, policy);
        push_table(&mut text, "[rules]", self.tables.rules.as_ref());
        push_table(&mut text, "[catalog]", Some(&self.catalog(occasion)));
        push_table(&mut text, "[limits]", self.tables.limits.as_ref());
        push_table(&mut text, "[[models]]", Some(&self.policy_model(occasion, policy)));
        for model in &self.tables.models {
            push_table(&mut text, "[[models]]", Some(model));
        }
        push_table(&mut text, "[[agents]]", Some(&self.learner_agent(occasion)));
        for agent in self.compared(occasion) {
            push_table(&mut text, "[[agents]]", Some(&agent_table(agent, true)));
        }
        for place in self.met(occasion) {
            let agent = agent_table(&self.opponents[place], false);
            push_table(&mut text, "[[agents]]", Some(&agent));
        }
        text
    }

    /// Returns the places in `opponents` of those who play on an occasion, ascending.
    ///
    /// # Panics
    /// As [`Experiment::tournament`].
    pub fn met(&self, occasion: Occasion) -> Vec<usize> {
        let mut met: Vec<usize> = match occasion {
            Occasion::WarmStart | Occasion::Step { .. } => self.train.opponents.clone(),
            Occasion::Evaluation { .. } => {
                let evaluate = self.evaluate.as_ref().expect("evaluations are configured");
                evaluate.fields.iter().flat_map(|field| field.opponents.clone()).collect()
            }
        };
        met.sort_unstable();
        met.dedup();
        met
    }

    /// Returns the baselines that play on an occasion: all of them once, in the first mode of the
    /// first evaluation.
    pub fn compared(&self, occasion: Occasion) -> &[AgentConfig] {
        let first = self.evaluate.as_ref().and_then(|evaluate| evaluate.modes.first());
        match occasion {
            Occasion::Evaluation { step: 0, mode } if first == Some(&mode) => &self.baselines,
            _ => &[],
        }
    }

    fn heading(&self, occasion: Occasion, policy: [u8; 32]) -> String {
        let (repetitions, group) = match occasion {
            Occasion::WarmStart => (self.warm_start().repetitions, None),
            Occasion::Step { .. } => (self.train.group_size, Some(self.train.group_size)),
            Occasion::Evaluation { .. } => {
                (self.evaluate.as_ref().expect("evaluations are configured").repetitions, None)
            }
        };
        let side = match self.learner.role {
            Role::Buyer => "candidates-buy",
            Role::Seller => "candidates-sell",
        };
        let who = match occasion {
            Occasion::WarmStart => "a teacher".to_owned(),
            _ => format!("the policy {}", hex(&policy)),
        };
        let mut text = format!(
            "# Of the experiment `{name}`, played with {who}.\nname = \"{title}\"\n\
             seed = {seed}\nschedule = \"gauntlet\"\nroles = \"{side}\"\n\
             repetitions = {repetitions}\n",
            name = self.name,
            title = occasion.name(&self.name),
            seed = occasion.seed(self.seed),
        );
        if let Some(group) = group {
            text.push_str(&format!("scenario_group = {group}\n"));
        }
        text
    }

    fn warm_start(&self) -> &super::WarmStartConfig {
        self.warm_start.as_ref().expect("a warm start is configured")
    }

    fn catalog(&self, occasion: Occasion) -> Table {
        let (split, sample) = match occasion {
            Occasion::WarmStart => ("train", self.warm_start().items),
            Occasion::Step { .. } => ("train", self.train.items),
            Occasion::Evaluation { .. } => {
                ("test", self.evaluate.as_ref().expect("evaluations are configured").items)
            }
        };
        let mut table = self.tables.catalog.clone();
        table.insert("split".to_owned(), Value::from(split));
        table.insert("sample".to_owned(), Value::from(sample));
        table
    }

    /// The policy's files lie in the run's folder; what they hold is pinned by hash.
    fn policy_model(&self, occasion: Occasion, policy: [u8; 32]) -> Table {
        let mut table = Table::new();
        let mut set = |key: &str, value: Value| drop(table.insert(key.to_owned(), value));
        set("name", Value::from(POLICY));
        if occasion == Occasion::WarmStart {
            set("script", Value::from("teacher"));
            return table;
        }
        match &self.policy.source {
            PolicySource::Weights(weights) if self.policy.adapter.is_some() => {
                set("weights", Value::from(weights.as_str()));
                set("adapter", Value::from("./policy"));
            }
            PolicySource::Compact(_) | PolicySource::Weights(_) => {
                set("weights", Value::from("./policy"));
                set("sha256", Value::from(hex(&policy)));
            }
        }
        set("device", Value::from(self.device.name()));
        if let Some(context) = self.policy.context_tokens {
            set("context", Value::from(context));
        }
        set("cache_mib", Value::from(self.policy.cache_mib));
        set("slots", Value::from(self.policy.slots));
        table
    }

    fn learner_agent(&self, occasion: Occasion) -> Table {
        let greedy = matches!(occasion, Occasion::Evaluation { mode: Mode::Greedy, .. });
        let params = match greedy {
            true => self.learner.greedy.as_ref().expect("greedy evaluations need it"),
            false => &self.learner.params,
        };
        let agent = AgentConfig {
            name: LEARNER.to_owned(),
            component: self.learner.component.clone(),
            params: params.clone(),
            models: vec![POLICY.to_owned()],
        };
        let mut table = agent_table(&agent, true);
        let training = match occasion {
            Occasion::Step { .. } => Value::from("train"),
            Occasion::WarmStart | Occasion::Evaluation { .. } => Value::from(true),
        };
        table.insert("training".to_owned(), training);
        table
    }
}

fn agent_table(agent: &AgentConfig, is_candidate: bool) -> Table {
    let mut table = Table::new();
    let mut set = |key: &str, value: Value| drop(table.insert(key.to_owned(), value));
    set("name", Value::from(agent.name.as_str()));
    set("component", Value::from(agent.component.as_str()));
    if !agent.params.is_empty() {
        set("params", Value::from(agent.params.as_str()));
    }
    if is_candidate {
        set("candidate", Value::from(true));
    }
    if !agent.models.is_empty() {
        set("models", Value::from(agent.models.clone()));
    }
    table
}

fn push_table(text: &mut String, header: &str, table: Option<&Table>) {
    if let Some(table) = table {
        text.push_str(&format!("\n{header}\n"));
        for key in sorted_keys(table) {
            text.push_str(&format!("{} = {}\n", written_key(key), written(&table[key])));
        }
    }
}

/// The order of a table's keys depends on how the TOML crate was built.
fn sorted_keys(table: &Table) -> Vec<&str> {
    let mut keys: Vec<&str> = table.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn written_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !key.is_empty() && key.bytes().all(bare) {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
    }
}

fn written(value: &Value) -> String {
    let listed = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Table(table) => {
            let keys = sorted_keys(table).into_iter();
            let parts = keys.map(|key| format!("{} = {}", written_key(key), written(&table[key])));
            format!("{{ {} }}", listed(parts.collect()))
        }
        Value::Array(values) => format!("[{}]", listed(values.iter().map(written).collect())),
        scalar => scalar.to_string(),
    }
}
