//! What a server, or something before it, says instead of an answer.

use longshore_io_tokio::answers::Trouble;
use longshore_io_tokio::plane::Action;
use longshore_io_tokio::wire::routes::{self, Route};

/// A page, as proxies send them.
const PAGE: &str =
    "<!doctype html><html><head><title>Sign in</title></head><body>task not found</body></html>";

/// Where a bare "not found" is as good as "gone".
const MEANS_GONE: [Route; 3] = [routes::GC_CHAT, routes::MESSAGES, routes::LINK];

/// The ways to give this trouble as an answer to this request, each with a name.
pub(super) fn faults(route: Route, trouble: Trouble) -> Vec<(&'static str, Action)> {
    let page = |status| Action::Reply {
        status,
        body: PAGE.into(),
        headers: vec![("content-type".into(), "text/html; charset=utf-8".into())],
    };
    match trouble {
        Trouble::NotSent => Vec::new(),
        Trouble::NoAnswer => vec![("answer lost", Action::LoseReply), ("request lost", Action::DropRequest)],
        Trouble::Throttled => vec![("429", Action::error_retry_after(429, "slow down", 1))],
        Trouble::Server => {
            let mut all = vec![
                ("500", Action::error(500, "boom")),
                ("408", Action::error(408, "late")),
                ("302", page(302)),
                ("407", page(407)),
                ("400 page", page(400)),
            ];
            // A link that is refused as not found names a runtime that may be gone, whoever says so.
            if route != routes::LINK {
                all.push(("404 page", page(404)));
                let text = Action::Reply {
                    status: 404,
                    body: "default backend - 404".into(),
                    headers: vec![("content-type".into(), "text/plain".into())],
                };
                all.push(("404 text", text));
            }
            all
        }
        Trouble::Gateway => vec![("502", page(502)), ("504", page(504))],
        Trouble::Garbled => garbled(route),
        Trouble::Unauthorized => vec![("401", Action::error(401, "invalid token"))],
        Trouble::Forbidden => vec![("403", Action::error(403, "account disabled"))],
        Trouble::NoRoute => vec![(
            "404 page not found",
            Action::Reply {
                status: 404,
                body: "404 page not found\n".into(),
                headers: vec![("content-type".into(), "text/plain".into())],
            },
        )],
        Trouble::Gone => {
            let mut all = vec![("gone", Action::error(404, phrase(route)))];
            if MEANS_GONE.contains(&route) {
                all.push(("404 not found", Action::error(404, "not found")));
            }
            if route == routes::LINK {
                all.push(("404 page", page(404)));
            }
            all
        }
        Trouble::Refused => {
            let mut all = vec![
                ("400", Action::error(400, "bad request")),
                ("422", Action::error(422, "not like this")),
            ];
            if !MEANS_GONE.contains(&route) {
                all.push(("404 not found", Action::error(404, "not found")));
            }
            all
        }
    }
}

/// A 2xx that cannot be read. Where the body says nothing that anybody needs, a body of another kind is as good as the right one.
fn garbled(route: Route) -> Vec<(&'static str, Action)> {
    if route == routes::LINK {
        return Vec::new();
    }
    let says_a_status =
        [routes::START, routes::STATUS, routes::MESSAGES, routes::USAGE, routes::COMPLETE, routes::FAIL];
    if says_a_status.contains(&route) {
        return vec![
            ("half of it", Action::Truncate),
            ("a page", Action::Garble(PAGE.into())),
            ("another object", Action::Garble(r#"{"error":"maintenance"}"#.into())),
            ("nothing", Action::Garble(String::new().into())),
        ];
    }
    vec![("half of it", Action::Truncate), ("a page", Action::Garble(PAGE.into()))]
}

/// The server's words for what the request is about.
fn phrase(route: Route) -> &'static str {
    if route == routes::GC_CHAT {
        "chat session not found"
    } else if [routes::GC_ISSUE, routes::GC_ISSUES].contains(&route) {
        "issue not found"
    } else if route == routes::GC_AUTOPILOT_RUN {
        "autopilot run not found"
    } else if route.template.ends_with("/result") {
        "request not found"
    } else if route.template.contains("/tasks/{}") {
        "task not found"
    } else if [routes::REGISTER, routes::RUNTIME_PROFILES].contains(&route) {
        "workspace not found"
    } else {
        "runtime not found"
    }
}
