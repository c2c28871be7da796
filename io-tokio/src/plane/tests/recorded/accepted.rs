//! Where the embedded control plane may differ from the recorded server, and why.

use std::fmt::Write as _;

/// Differences that the recordings show.
pub(super) const ACCEPTED: [(&str, &str); 0] = [];

/// Differences that no recording shows.
const BESIDE: [(&str, &str); 8] = [
    (
        "`register` with an unknown or disabled profile",
        "refused as a whole; the server keeps the entries before the bad one",
    ),
    ("bodies over 64 MiB, full queues", "413; the server has no such bounds"),
    ("ids", "any text is taken and compared as it is; the server refuses what is no UUID with 400"),
    ("plugin hooks and credentials", "503, as a server answers whose plugins are off"),
    (
        "`complete` whose output is a notice that the context window is full",
        "completed; the server fails such a task",
    ),
    ("`fail` without a reason", "`agent_error.unknown`; the server classifies the text"),
    (
        "texts with secrets",
        "kept as they are: they do not leave the machine. The server masks what looks like one",
    ),
    (
        "chats, comments, autopilots",
        "a task is put in the queue by its operator; there are no follow-up runs, no posted answers",
    ),
];

/// The page's section.
pub(super) fn section() -> String {
    let mut out = String::from(
        "\nThe same requests that a daemon was recorded to send to a real server are sent to the embedded control plane, and statuses, types of\n\
         content, fields with their types, and the words of errors and states are compared. These differences are accepted:\n\n\
         | where | why |\n|---|---|\n",
    );
    for (place, why) in ACCEPTED {
        let _ = writeln!(out, "| `{place}` | {why} |");
    }
    for (place, why) in BESIDE {
        let _ = writeln!(out, "| {place} | {why} |");
    }
    out.push('\n');
    out
}
