use super::*;
use tokio::net::TcpListener;

#[tokio::test]
async fn an_outage_refuses_connections_and_ends_on_the_same_port_with_the_same_state() {
    let (server, _client, runtime, task) = running().await;
    let url = server.url();
    server.pause().await;
    // A client of its own: the other one may not have noticed yet that its connection is gone.
    let refused =
        Client::of(&server).send(Method::GET, "/api/daemon/workspaces", "").await.expect_err("down");
    assert!(refused.is_connect(), "{refused:?}");
    server.resume().await;
    assert_eq!(server.url(), url);
    let client = Client::of(&server);
    assert_eq!(client.task(&task, "complete", json!({})).await.1["status"], "completed");
    assert_eq!(client.claim(&runtime).await, json!([]));
}

#[tokio::test]
async fn an_outage_cuts_what_is_under_way() {
    let (server, client, _, task) = running().await;
    let fault = server.fault(Rule::new("POST", "/**", Action::HoldReply));
    let path = format!("/api/daemon/tasks/{task}/complete");
    let call = client.send(Method::POST, &path, "{}");
    let outage = async {
        fault.reached(1).await;
        server.wait_for(&task, State::Completed, SOON).await.expect("acted");
        server.pause().await;
    };
    let (answer, ()) = tokio::join!(call, outage);
    assert!(answer.is_err(), "no answer comes during an outage");
    server.resume().await;
    fault.remove();
    assert_eq!(client.task(&task, "complete", json!({})).await.0, 200);
}

#[tokio::test]
async fn connections_can_be_cut_while_new_ones_are_taken() {
    let (server, client, _, task) = running().await;
    let fault = server.fault(Rule::new("POST", "/**", Action::Hold).first(1));
    let path = format!("/api/daemon/tasks/{task}/complete");
    let call = client.send(Method::POST, &path, "{}");
    let cut = async {
        fault.reached(1).await;
        server.cut_connections().await;
    };
    let (answer, ()) = tokio::join!(call, cut);
    assert!(answer.is_err());
    assert_eq!(
        server.task(&task).expect("there").state,
        State::Running,
        "a held request that is cut does nothing"
    );
    assert_eq!(client.task(&task, "complete", json!({})).await.0, 200);
}

#[tokio::test]
async fn a_stopped_server_frees_its_port() {
    let server = server().await;
    let addr = server.addr();
    server.stop().await;
    TcpListener::bind(addr).await.expect("the port is free");
}
