//! What the agents of the matrix do, and the points at which they wait.

use crate::rig::{Rig, WITHIN};
use longshore_core::id::TaskId;
use longshore_io_tokio::agent_double::Step;
use longshore_io_tokio::plane::TaskSpec;
use longshore_tests::Gate;

/// The answer of an agent that was let go on to its end.
pub(crate) const ANSWER: &str = "all is said";
/// How many lines the agent says in each of its three parts.
const PARTS: [u64; 3] = [120, 150, 180];
/// How long a line is.
const WIDTH: usize = 8;

/// The points, in the order in which an agent comes to them. It does not pass one before it is opened.
pub(crate) struct Stage {
    /// It was launched.
    pub(crate) born: Gate,
    /// Before its first words.
    pub(crate) first: Gate,
    /// After the first part.
    pub(crate) second: Gate,
    /// The second part is written.
    pub(crate) written: Gate,
    /// Before the third part and the end.
    pub(crate) third: Gate,
}

impl Stage {
    pub(crate) fn new(rig: &Rig) -> Self {
        Self::named(rig, "gate")
    }

    /// One of several.
    pub(crate) fn named(rig: &Rig, of: &str) -> Self {
        let gate = |name: &str| Gate::new(rig.home.dir().join(format!("{of}-{name}")));
        Self {
            born: gate("born"),
            first: gate("first"),
            second: gate("second"),
            written: gate("written"),
            third: gate("third"),
        }
    }

    fn gates(&self) -> [&Gate; 5] {
        [&self.born, &self.first, &self.second, &self.written, &self.third]
    }

    /// Lets this and every later agent pass everything.
    pub(crate) fn open_all(&self, rig: &mut Rig) {
        rig.open.extend(self.gates().map(Gate::open));
    }

    /// Waits until somebody passes the gate, and leaves it open.
    pub(crate) async fn pass(&self, gate: &Gate, rig: &mut Rig) {
        rig.open.push(gate.passed(WITHIN).await.expect("an agent comes to the gate"));
    }

    /// An agent that says its parts. One that leaves does so by itself after its answer, and does not wait for the end of its input.
    pub(crate) fn spec(&self, leaves: bool) -> TaskSpec {
        let [one, two, three] = PARTS.map(|lines| Step::Flood { lines, bytes: WIDTH });
        let mut script = vec![
            self.born.wait(),
            self.first.wait(),
            one,
            self.second.wait(),
            two,
            self.written.wait(),
            self.third.wait(),
            three,
            Step::Result(ANSWER.into()),
        ];
        script.extend(leaves.then_some(Step::Exit(0)));
        TaskSpec::new("claude").script(&script)
    }

    /// A task whose agent stays, as soon as it is in the middle of its output: its second part is written, and it waits for the third.
    pub(crate) async fn in_mid_output(&self, rig: &mut Rig) -> TaskId {
        let task = rig.enqueue(self.spec(false));
        rig.open.extend([self.born.open(), self.first.open()]);
        rig.spoke(&task).await;
        rig.open.push(self.second.open());
        self.pass(&self.written, rig).await;
        task
    }

    /// All that such an agent says.
    pub(crate) fn whole() -> String {
        said(&PARTS)
    }

    /// The last line of its second part.
    pub(crate) fn last_before_third() -> String {
        format!("{:0WIDTH$}", PARTS[1])
    }

    /// What it has said when its second part is written.
    pub(crate) fn up_to_third() -> String {
        said(&PARTS[..2])
    }
}

fn said(parts: &[u64]) -> String {
    parts.iter().map(|lines| numbers(*lines, WIDTH)).collect()
}

/// The numbers from 1 on, each filled up to so many digits, as the double says them.
pub(crate) fn numbers(to: u64, digits: usize) -> String {
    let mut text = String::new();
    for n in 1..=to {
        // The width of a formatter ends at 65 535.
        let number = n.to_string();
        text.extend(std::iter::repeat_n('0', digits.saturating_sub(number.len())));
        text.push_str(&number);
    }
    text
}
