//! A daemon is killed at each instant, with each kind of server for the next one: the survival table.

use crate::audit::{self, Audit};
use crate::document;
use crate::instants::Instant;
use crate::outages::Outage;
use crate::rig::Rig;
use crate::stage::Stage;
use crate::together;

fn name(instant: Instant, outage: Outage) -> String {
    format!("{} / {}", instant.name(), outage.name())
}

async fn killed(instant: Instant, outage: Outage) -> Audit {
    let mut rig = Rig::new(|home| home).await;
    let stage = Stage::new(&rig);
    let task = instant.reach(&mut rig, &stage).await;
    let mut outage = outage.begin(&rig).await;
    rig.start_next();
    outage.met(&rig).await;
    stage.open_all(&mut rig);
    outage.end(&mut rig).await;
    let tries = rig.over(&task).await;
    let mut audit = Audit::default();
    audit::leftovers(&rig, &mut audit).await;
    rig.stop().await;
    let seen = audit::task(&rig, &tries, instant.is_launched());
    audit.wrong.extend(seen.wrong);
    audit.says = seen.says;
    if !audit.wrong.is_empty() {
        audit.wrong.push(rig.log());
    }
    audit
}

#[tokio::test]
#[ignore = "takes longer: 44 daemons are killed, and their successors wait for servers"]
async fn a_daemon_that_is_killed_loses_nothing_whenever_and_whatever_the_server_does() {
    let cells = Instant::ALL.iter().flat_map(|instant| Outage::ALL.map(|outage| (*instant, outage)));
    let scenarios = cells.map(|(instant, outage)| (name(instant, outage), killed(instant, outage)));
    let seen = together::all(scenarios.collect()).await;
    let mut head = vec!["killed"];
    head.extend(Outage::ALL.map(Outage::name));
    let rows = Instant::ALL.map(|instant| {
        let mut row = vec![instant.name().to_owned()];
        row.extend(Outage::ALL.map(|outage| seen[&name(instant, outage)].clone()));
        row
    });
    document::hold("kills", &document::table(&head, rows));
}
