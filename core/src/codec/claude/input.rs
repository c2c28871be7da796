//! What goes to the agent's stdin first.

use crate::codec::json;

/// The prompt as the one line that starts the run, with its line feed.
pub fn first_input(prompt: &str) -> String {
    let text = json::quoted(prompt);
    let message = format!(r#"{{"role":"user","content":[{{"type":"text","text":{text}}}]}}"#);
    format!("{{\"type\":\"user\",\"message\":{message}}}\n")
}
