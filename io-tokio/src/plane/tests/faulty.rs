use super::*;

fn complete(action: Action) -> Rule {
    Rule::new("POST", "/api/daemon/tasks/*/complete", action)
}

async fn try_complete(client: &Client, task: &TaskId) -> reqwest::Result<String> {
    let path = format!("/api/daemon/tasks/{task}/complete");
    client.send(Method::POST, &path, r#"{"output":"done"}"#).await?.text().await
}

#[tokio::test]
async fn an_answer_can_be_replaced_for_a_window_of_calls() {
    let (server, client, _, task) = running().await;
    let fault = server.fault(complete(Action::error_retry_after(503, "down", 7)).first(2));
    for _ in 0..2 {
        let path = format!("/api/daemon/tasks/{task}/complete");
        let answer = client.send(Method::POST, &path, "{}").await.expect("an answer");
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &"7".parse().expect("a value"))
        );
        assert_eq!(server.task(&task).expect("there").state, State::Running);
    }
    assert_eq!(client.task(&task, "complete", json!({})).await.1["status"], "completed");
    assert_eq!(fault.hits(), 2);
}

#[tokio::test]
async fn a_lost_reply_is_acted_upon_and_a_dropped_request_is_not() {
    let (server, client, _, task) = running().await;
    server.fault(complete(Action::DropRequest).first(1));
    server.fault(complete(Action::LoseReply).nth(2));
    assert!(try_complete(&client, &task).await.is_err());
    assert_eq!(server.task(&task).expect("there").state, State::Running);
    assert!(try_complete(&client, &task).await.is_err());
    assert_eq!(server.task(&task).expect("there").state, State::Completed);
    assert!(try_complete(&client, &task).await.expect("an answer").contains("completed"));
    let answers: Vec<_> =
        server.requests_where(|it| it.is("POST", "/complete")).iter().map(|it| it.answer).collect();
    assert_eq!(answers, [Answer::Dropped, Answer::Lost(200), Answer::Sent(200)]);
}

#[tokio::test]
async fn a_held_request_is_not_acted_upon_before_it_is_let_go_and_a_held_reply_is() {
    for (action, while_held, known) in [
        (Action::Hold, State::Running, Answer::Pending),
        (Action::HoldReply, State::Completed, Answer::Lost(200)),
    ] {
        let (server, client, _, task) = running().await;
        let fault = server.fault(complete(action));
        let look = async {
            fault.reached(1).await;
            server.wait_for(&task, while_held, SOON).await.expect("held");
            let is_known = |it: &Request| it.is("POST", "/complete") && it.answer == known;
            server.wait_for_request(SOON, is_known).await.expect("logged");
            fault.release();
        };
        let (answer, ()) = tokio::join!(try_complete(&client, &task), look);
        assert!(answer.expect("an answer").contains("completed"));
        assert!(try_complete(&client, &task).await.is_ok(), "what is let go holds nothing any more");
    }
}

#[tokio::test]
async fn a_delay_holds_up_only_what_it_is_for() {
    let (server, client, runtime, task) = running().await;
    let delay = Duration::from_millis(80);
    server.fault(complete(Action::Delay(delay)));
    let slow = client.task(&task, "complete", json!({}));
    let quick = client.claim(&runtime);
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!((slow.0.as_u16(), quick), (200, json!([])));
    let took = |end: &str| {
        let request = server.requests_where(|it| it.is("POST", end)).pop().expect("logged");
        request.took().expect("answered")
    };
    assert!(took("/complete") >= delay);
    assert!(took("/tasks/claim") < delay);
}

#[tokio::test]
async fn an_answer_can_drip_be_garbage_or_be_cut_short() {
    let (server, client, _, task) = running().await;
    let drip = server.fault(complete(Action::Drip { chunk: 50, every: Duration::from_millis(1) }));
    assert!(try_complete(&client, &task).await.expect("whole").ends_with("}\n"));
    drip.remove();
    let garble = server.fault(complete(Action::Garble(b"{\"status\":".to_vec())));
    assert_eq!(try_complete(&client, &task).await.expect("garbage"), "{\"status\":");
    garble.remove();
    server.fault(complete(Action::Truncate).first(1));
    assert!(try_complete(&client, &task).await.is_err());
    assert!(try_complete(&client, &task).await.is_ok());
}

#[tokio::test]
async fn a_wait_that_fails_shows_what_came_instead() {
    let (server, _client, _, task) = running().await;
    let failed =
        server.wait_for(&task, State::Completed, Duration::from_millis(10)).await.expect_err("too early");
    assert!(failed.to_string().contains("/start"), "{failed}");
    server.cancel(&task).expect("running");
    let failed = server.wait_for(&task, State::Completed, SOON).await.expect_err("cancelled");
    assert!(matches!(failed, WaitError::EndedOtherwise { state: "cancelled", .. }), "{failed}");
}

#[tokio::test]
async fn an_answer_can_stop_at_any_byte_for_good_or_for_a_while() {
    let (server, client, _, task) = running().await;
    let status = format!("/api/daemon/tasks/{task}/status");
    let whole = "{\"status\":\"running\"}\n";
    let of = |action: Action| Rule::new("GET", "/api/daemon/tasks/*/status", action);
    let body = async |action: Action| {
        let fault = server.fault(of(action));
        let mut answer = client.send(Method::GET, &status, "").await?;
        let mut got = Vec::new();
        let end = loop {
            match answer.chunk().await {
                Ok(Some(bytes)) => got.extend_from_slice(&bytes),
                Ok(None) => break None,
                Err(why) => break Some(why),
            }
        };
        fault.remove();
        reqwest::Result::Ok((String::from_utf8(got).expect("text"), end))
    };
    for action in [Action::Cut(5), Action::Reset(5)] {
        let (_, end) = body(action).await.expect("a head");
        assert!(end.is_some(), "the body has no end");
    }
    let (got, end) = body(Action::Headers(vec![("retry-after".into(), "3".into())])).await.expect("a head");
    assert_eq!((got.as_str(), end.is_none()), (whole, true));
    let (got, end) = body(Action::Flood(3 << 20)).await.expect("a head");
    assert_eq!((got.len(), end.is_none()), (3 << 20, true));

    let fault = server.fault(of(Action::Stall(5)));
    let mut answer = client.send(Method::GET, &status, "").await.expect("a head");
    let first = answer.chunk().await.expect("a piece").expect("some");
    assert_eq!(&first[..], &whole.as_bytes()[..5]);
    fault.release();
    assert_eq!(answer.text().await.expect("the rest"), whole[5..]);
}

#[tokio::test]
async fn a_page_for_people_comes_with_its_type_and_a_date_of_its_own() {
    let (server, client, _, task) = running().await;
    let Action::Reply { status, body, mut headers } = Action::page(502, "<h1>Bad gateway</h1>") else {
        panic!("a page is an answer")
    };
    headers.push(("date".into(), "Thu, 01 Jan 2026 00:00:00 GMT".into()));
    server.fault(complete(Action::Reply { status, body, headers }));
    let path = format!("/api/daemon/tasks/{task}/complete");
    let answer = client.send(Method::POST, &path, "{}").await.expect("an answer");
    let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(
        (answer.status().as_u16(), header("content-type").as_str()),
        (502, "text/html; charset=utf-8")
    );
    assert_eq!(header("date"), "Thu, 01 Jan 2026 00:00:00 GMT");
    assert_eq!(answer.text().await.expect("a body"), "<h1>Bad gateway</h1>");
}
