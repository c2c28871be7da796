use super::*;
use crate::agent_double::{SCRIPT_ENV, Step};
use crate::plane::scenario::demo_tasks;
use std::collections::BTreeSet;

#[test]
fn the_six_tasks_have_names_of_their_own_and_scripts_that_the_double_reads() {
    let all = demo_tasks();
    assert_eq!(all.len(), 6);
    assert_eq!(all.iter().map(|it| it.name).collect::<BTreeSet<_>>().len(), 6);
    for scenario in &all {
        let spec = scenario.spec("claude");
        let script = spec.content.custom_env[SCRIPT_ENV].expose();
        let steps: Vec<Step> = serde_json::from_str(script).expect("a script");
        assert_eq!(steps, scenario.script);
        assert_eq!(scenario.answer.is_some(), scenario.ends == State::Completed, "{}", scenario.name);
    }
}

#[tokio::test]
async fn each_of_the_six_ends_as_it_promises_when_a_daemon_does_its_part() {
    let server = server().await;
    let client = Client::of(&server);
    let runtime = client.register().await;
    for scenario in demo_tasks() {
        let staged = scenario.stage(&server, "claude").expect("a runtime");
        let daemon = async {
            let claimed = client.claim(&runtime).await;
            assert_eq!(claimed[0]["id"], staged.task.as_str(), "{}", scenario.name);
            client.task(&staged.task, "start", json!({})).await;
            let said = json!({ "messages": [{ "seq": 1, "type": "text", "content": "hello" }] });
            client.task(&staged.task, "messages", said).await;
            match scenario.ends {
                State::Completed => {
                    let report = json!({ "output": scenario.answer });
                    while client.task(&staged.task, "complete", report.clone()).await.0 != 200 {}
                }
                State::Failed => {
                    client.task(&staged.task, "fail", json!({ "error": "x" })).await;
                }
                _ => {
                    server.wait_for(&staged.task, State::Cancelled, SOON).await.expect("cancelled");
                    client.task(&staged.task, "cancel-ack", json!({})).await;
                }
            }
        };
        let (ended, ()) = tokio::join!(staged.see_through(&server, SOON), daemon);
        let row = ended.expect("as promised");
        assert_eq!(row.result.map(|it| it.output.to_string()), scenario.answer.map(Into::into));
        let reports =
            server.requests_where(|it| it.path == format!("/api/daemon/tasks/{}/complete", staged.task));
        let expected = u64::from(scenario.ends == State::Completed) + scenario.refused_reports;
        assert_eq!(reports.len() as u64, expected, "{}", scenario.name);
    }
}
