//! Runtimes, workspaces, agents and the credential.

use super::Incident;
use crate::observe::catalog::Check::{By, Test};

pub(super) const INCIDENTS: &[Incident] = &[
    Incident {
        id: "R-23",
        report: "#2391, #2404",
        what: "a runtime that was deleted beat for ever",
        checks: &[
            By("INV-21"),
            By("INV-17"),
            Test("core/tests/scenarios/fleet.rs", "i16_runtimes_that_are_gone_are_registered_again_once"),
        ],
    },
    Incident {
        id: "R-24",
        report: "MUL-2215",
        what: "a late loss of the same wave registered twice; the first repair hid failures",
        checks: &[
            By("I16"),
            By("INV-17"),
            Test(
                "core/tests/scenarios/incidents.rs",
                "incident_r24_a_late_loss_of_the_same_wave_registers_nothing",
            ),
        ],
    },
    Incident {
        id: "R-25",
        report: "MUL-3332",
        what: "a new profile failed the tasks that ran",
        checks: &[
            By("INV-10"),
            By("ORPHANS-FIRST"),
            Test("core/tests/scenarios/fleet.rs", "leftovers_of_a_runtime_with_a_task_are_not_failed"),
            Test("core/tests/scenarios/runs.rs", "inv_50_a_runtime_that_is_gone_keeps_its_task"),
        ],
    },
    Incident {
        id: "R-26",
        report: "MUL-3269",
        what: "an older answer took off line what a newer one had brought",
        checks: &[
            By("INV-07"),
            By("INV-13"),
            Test(
                "core/tests/scenarios/fleet.rs",
                "inv_07_a_workspace_is_registered_again_only_once_its_runtimes_are_off_line",
            ),
        ],
    },
    Incident {
        id: "R-27",
        report: "MUL-6164",
        what: "an agent that cannot be run stayed on line, and every task died at its launch",
        checks: &[
            Test(
                "io-tokio/src/discover/tests.rs",
                "old_silent_and_broken_programs_are_skipped_with_a_reason",
            ),
            By("INV-12"),
            Test(
                "core/tests/scenarios/agent_clis.rs",
                "inv_14_inv_48_incident_r27_an_agent_that_cannot_be_run_goes_off_line_while_nothing_is_about",
            ),
        ],
    },
    Incident {
        id: "R-28",
        report: "MUL-5225, #5837",
        what: "versions were asked for once for each workspace and agent",
        checks: &[By("INV-15"), Test("io-tokio/src/discover/tests.rs", "programs_are_asked_side_by_side")],
    },
    Incident {
        id: "R-29",
        report: "MUL-5119",
        what: "agents were asked one after the other, and the first use showed none",
        checks: &[Test("io-tokio/src/discover/tests.rs", "programs_are_asked_side_by_side")],
    },
    Incident {
        id: "R-30",
        report: "MUL-5439, #6077",
        what: "an agent that was installed later stayed invisible",
        checks: &[Test(
            "core/tests/scenarios/agent_clis.rs",
            "a_slow_agent_is_looked_at_again_soon_and_registered_as_it_answers",
        )],
    },
    Incident {
        id: "R-31",
        report: "MUL-2744",
        what: "an expired credential ended the start before anything helpful was said",
        checks: &[
            By("INV-03"),
            By("INV-04"),
            Test(
                "tests/tests/black_box/service.rs",
                "a_refused_credential_at_the_start_ends_the_daemon_with_a_hint",
            ),
        ],
    },
];
