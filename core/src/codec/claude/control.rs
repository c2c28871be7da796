//! Answers to what the agent asks while it works. Nobody is there to ask, so everything is allowed.

use crate::codec::json::{self, Json};

/// The line that answers a control request. The tool's input goes back as it came, except that nothing may go on in the
/// background: the run ends with the agent's turn.
pub(super) fn answer(event: Json<'_>) -> String {
    let [id, request] = event.fields(["request_id", "request"]);
    let id = id.filter(|id| id.is_string()).map_or("\"\"", Json::raw);
    let input = request.and_then(|request| request.field("input")).filter(|input| input.is_object());
    let input = input.map_or_else(|| "{}".to_owned(), in_foreground);
    let response = format!(r#"{{"behavior":"allow","updatedInput":{input}}}"#);
    let line = format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{id},"response":{response}}}}}"#
    );
    json::one_line(line) + "\n"
}

fn in_foreground(input: Json<'_>) -> String {
    let is_background = |name: Json<'_>, value: Json<'_>| {
        value.bool() == Some(true) && name.string().is_some_and(|name| name == "run_in_background")
    };
    let mut any = false;
    input.each_field(|name, value| any |= is_background(name, value));
    if !any {
        return input.raw().to_owned();
    }
    let mut out = String::with_capacity(input.raw().len() + 1);
    input.each_field(|name, value| {
        out.push(if out.is_empty() { '{' } else { ',' });
        out.push_str(name.raw());
        out.push(':');
        out.push_str(if is_background(name, value) { "false" } else { value.raw() });
    });
    out.push('}');
    out
}
