//! INV-120: one refresh of a task is on its way.
//! Made small by `longshore trace shrink`: 11 of 59 events are left.

use longshore_core::script::held_to;

/// As the core was when it had the bug.
pub(crate) const TRACE: &str = r#"{"config":{},"core":"0.1.0","format":{"major":1,"minor":3},"from":null,"rec":"header","seed":"0000000000000000","source":"shrink","start":{"mono":0,"wall":0}}
{"rec":"step","n":0,"t":0,"w":0,"fx":[{"fx":"api","op":1,"call":{"call":"renew"},"deadline":15000},{"fx":"api","op":2,"call":{"call":"workspaces"},"deadline":15000},{"fx":"fs","op":3,"call":{"call":"probe","all":true}}]}
{"rec":"note","n":0,"text":"rule INV-120: the lease of claim 1 is refreshed twice at once"}
{"rec":"step","n":1,"t":0,"w":0,"ev":{"ev":"api","op":2,"r":{"Ok":{"reply":"workspaces","list":["w1"],"legacy":false}}},"fx":[{"fx":"api","op":4,"call":{"call":"profiles","workspace":"w1"},"deadline":30000}]}
{"rec":"step","n":2,"t":0,"w":0,"ev":{"ev":"api","op":4,"r":{"Ok":{"reply":"profiles","signature":1,"count":0}}},"fx":[]}
{"rec":"step","n":3,"t":0,"w":0,"ev":{"ev":"fs","op":3,"r":{"Ok":{"reply":"probed","agents":[{"provider":"claude","standing":{"is":"works","version":1}},{"provider":"codex","standing":{"is":"works","version":1}},{"provider":"opencode","standing":{"is":"works","version":1}}]}}},"fx":[{"fx":"api","op":5,"call":{"call":"register","workspace":"w1","agents":["claude","codex","opencode"],"profiles":1},"deadline":30000}]}
{"rec":"step","n":4,"t":0,"w":0,"ev":{"ev":"api","op":5,"r":{"Ok":{"reply":"registered","runtimes":[{"id":"r1","provider":"claude"},{"id":"r2","provider":"codex"},{"id":"r3","provider":"claude"}]}}},"fx":[{"fx":"runtime","set":1,"runtime":"r1","change":{"change":"added","workspace":"w1","provider":"claude"}},{"fx":"api","op":6,"call":{"call":"recover_orphans","runtime":"r1"},"deadline":30000},{"fx":"runtime","set":2,"runtime":"r2","change":{"change":"added","workspace":"w1","provider":"codex"}},{"fx":"api","op":7,"call":{"call":"recover_orphans","runtime":"r2"},"deadline":30000},{"fx":"runtime","set":3,"runtime":"r3","change":{"change":"added","workspace":"w1","provider":"claude"}},{"fx":"api","op":8,"call":{"call":"recover_orphans","runtime":"r3"},"deadline":30000},{"fx":"fact","fact":{"fact":"ready"}},{"fx":"ws","conn":1,"cmd":{"cmd":"connect","set":3}}]}
{"rec":"step","n":5,"t":0,"w":0,"ev":{"ev":"ws","conn":1,"ws":{"ws":"up"}},"fx":[{"fx":"fact","fact":{"fact":"reconciled"}},{"fx":"ws","conn":1,"cmd":{"cmd":"beat","runtime":"r1"}},{"fx":"api","op":9,"call":{"call":"workspaces"},"deadline":15000}]}
{"rec":"step","n":6,"t":0,"w":0,"ev":{"ev":"api","op":6,"r":{"Ok":{"reply":"done"}}},"fx":[{"fx":"runtime","set":3,"runtime":"r1","change":{"change":"claimable"}},{"fx":"api","op":10,"call":{"call":"claim","set":3,"scope":{"scope":"named","runtimes":["r1"]},"max":20},"deadline":5000}]}
{"rec":"step","n":7,"t":0,"w":0,"ev":{"ev":"api","op":10,"r":{"Ok":{"reply":"claimed","offers":[],"unusable":0}}},"fx":[]}
{"rec":"step","n":8,"t":0,"w":0,"ev":{"ev":"ws","conn":1,"ws":{"ws":"ack","runtime":"r3","gone":false,"claims":true}},"fx":[]}
{"rec":"step","n":9,"t":0,"w":0,"ev":{"ev":"ws","conn":1,"ws":{"ws":"task_available","runtime":"r1","task":"t2"}},"fx":[{"fx":"api","op":11,"call":{"call":"claim_over","conn":1,"claim":{"set":3,"scope":{"scope":"named","runtimes":["r1"]},"max":20}},"deadline":7000}]}
{"rec":"step","n":10,"t":0,"w":0,"ev":{"ev":"api","op":11,"r":{"Ok":{"reply":"claimed","offers":[{"claim":1,"task":"t1","runtime":"r2","root":"d1","in_place":true}],"unusable":0}}},"fx":[{"fx":"keep","claim":1,"entry":{"keep":"claimed","offer":{"claim":1,"task":"t1","runtime":"r2","root":"d1","in_place":true},"provider":"codex"}},{"fx":"fact","fact":{"fact":"admitted","claim":1,"task":"t1","runtime":"r2","slot":0}},{"fx":"fact","fact":{"fact":"phase","claim":1,"phase":"resolving"}},{"fx":"fs","op":12,"call":{"call":"resolve","claim":1}},{"fx":"api","op":13,"call":{"call":"claim_over","conn":1,"claim":{"set":3,"scope":{"scope":"named","runtimes":["r1"]},"max":19}},"deadline":7000}]}
{"rec":"step","n":11,"t":60000,"w":60000,"ev":{"ev":"tick"},"fx":[{"fx":"ws","conn":1,"cmd":{"cmd":"beat","runtime":"r2"}},{"fx":"api","op":14,"call":{"call":"beat","runtime":"r2"},"deadline":90000},{"fx":"api","op":15,"call":{"call":"profiles","workspace":"w1"},"deadline":90000},{"fx":"api","op":16,"call":{"call":"status","claim":1},"deadline":90000},{"fx":"ws","conn":1,"cmd":{"cmd":"beat","runtime":"r1"}},{"fx":"api","op":17,"call":{"call":"beat","runtime":"r1"},"deadline":90000},{"fx":"cancel","op":13},{"fx":"ws","conn":1,"cmd":{"cmd":"beat","runtime":"r3"}},{"fx":"api","op":18,"call":{"call":"beat","runtime":"r3"},"deadline":90000},{"fx":"cancel","op":1},{"fx":"cancel","op":9},{"fx":"api","op":19,"call":{"call":"lease","claim":1},"deadline":70000},{"fx":"cancel","op":7},{"fx":"cancel","op":8},{"fx":"api","op":1099511627795,"call":{"call":"lease","claim":1},"deadline":70000}]}
"#;

#[test]
fn inv_120_holds_over_what_once_broke_it() {
    let broken = held_to(TRACE, "INV-120").expect("a trace of one life");
    assert!(broken.is_empty(), "{broken:#?}");
}
