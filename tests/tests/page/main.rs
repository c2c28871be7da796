//! The page that `longshore trace render` makes, in a real browser, with a trace of 100 000 steps.
#![cfg(target_os = "linux")]

mod browser;

use browser::{Browser, installed};
use longshore_core::script::Life;
use longshore_core::trace::{Header, encode};
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Steps of the trace, the creation not counted.
const STEPS: u64 = 100_000;
/// The longest that half of the frames may take while the picture moves, in milliseconds: that of a machine without graphics, which
/// tests other things meanwhile. One that is at rest needs 17.
const FRAME: f64 = 150.0;
/// The Enter key of WebDriver.
const ENTER: &str = "\u{e007}";

/// Writes a trace whose daemon starts one task twice.
fn trace(path: &Path) {
    let mut life = Life::new(3);
    let mut file = BufWriter::new(File::create(path).expect("creates"));
    let mut lines = Vec::new();
    encode::header(&mut lines, &Header::new("test", life.config.clone(), life.seed, life.start))
        .expect("encodes");
    encode::start(&mut lines, life.start, life.fx.as_slice()).expect("encodes");
    let mut broken = false;
    for n in 1..=STEPS {
        let (now, event) = life.step();
        let mut effects = life.fx.as_slice().to_vec();
        let start = |it: &&longshore_core::effect::Effect| {
            longshore_core::script::effect_label(it).starts_with("start ")
        };
        if n > STEPS / 2
            && !broken
            && let Some(start) = effects.iter().find(start).cloned()
        {
            effects.push(start);
            broken = true;
        }
        encode::step(&mut lines, n, now, &event, &effects).expect("encodes");
        file.write_all(&lines).expect("writes");
        lines.clear();
    }
    assert!(broken, "a task is started in the second half");
    file.flush().expect("writes");
}

/// Makes the page, by the program.
fn page(dir: &Path) -> PathBuf {
    trace(&dir.join("run.jsonl"));
    let output = Command::new(env!("CARGO_BIN_EXE_longshore-under-test"))
        .args(["trace", "render", "run.jsonl", "-o", "run.html"])
        .current_dir(dir)
        .env("HOME", dir)
        .output()
        .expect("it ran");
    assert!(output.status.success(), "{output:?}");
    dir.join("run.html")
}

#[tokio::test]
#[ignore = "takes longer: needs Chromium, and draws 100 000 steps"]
async fn a_page_of_100_000_steps_can_be_looked_around_in() {
    let Some(programs) = installed() else {
        assert!(
            std::env::var_os("CI").is_none(),
            "chromium and chromedriver must be installed where CI is set"
        );
        eprintln!("skipped: chromium and chromedriver are not installed");
        return;
    };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let dir = TempDir::new().expect("temp");
    let page = page(dir.path());
    let browser = Browser::start(programs, dir.path()).await;
    browser.prefer("light").await;
    browser.open(&format!("file://{}", page.display())).await;

    loads(&browser).await;
    zooms(&browser).await;
    drags(&browser).await;
    searches(&browser).await;
    hovers_and_selects(&browser).await;
    scrolls_the_table(&browser).await;
    shows_violations(&browser).await;
    explains_what_is_drawn(&browser).await;
    is_light_and_dark(&browser).await;
    moves_smoothly(&browser).await;
    asks_nobody(&browser).await;
    browser.quit().await;
}

async fn loads(browser: &Browser) {
    browser.until("globalThis.longshore?.drawn.frames > 0 && longshore.drawn.shapes > 0").await;
    let steps = browser
        .run("return [longshore.trace.steps.count, document.title, longshore.trace.lanes.length];")
        .await;
    assert_eq!((steps[0].as_u64(), steps[1].as_str()), (Some(STEPS + 1), Some("run.jsonl")));
    assert!(steps[2].as_u64().is_some_and(|lanes| lanes > 1_000), "{steps}");
    // Nothing but what is to be seen is an element.
    let elements = browser.run("return document.querySelectorAll('*').length;").await;
    assert!(elements.as_u64().is_some_and(|count| count < 1_000), "{elements}");
    let ids = browser.run("const ids = [...document.querySelectorAll('[id]')].map((it) => it.id); return ids.length === new Set(ids).size;").await;
    assert_eq!(ids, true, "ids are single");
    let nameless = "return [...document.querySelectorAll('button, input, [role]')].filter((it) => !(it.textContent.trim() || it.getAttribute('aria-label') || it.getAttribute('aria-labelledby') || it.hidden || it.getAttribute('role') === 'presentation' || it.getAttribute('role') === 'rowgroup' || it.getAttribute('role') === 'gridcell')).map((it) => it.outerHTML);";
    assert_eq!(
        browser.run(nameless).await,
        Value::Array(Vec::new()),
        "everything that can be used has a name"
    );
}

/// The part that is to be seen, in milliseconds.
async fn span(browser: &Browser) -> (f64, f64) {
    let span = browser.run("return [longshore.view.from, longshore.view.to];").await;
    (span[0].as_f64().expect("a time"), span[1].as_f64().expect("a time"))
}

async fn centre(browser: &Browser, selector: &str) -> (f64, f64) {
    let body = format!(
        "const box = document.querySelector('{selector}').getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2];"
    );
    let at = browser.run(&body).await;
    (at[0].as_f64().expect("a place"), at[1].as_f64().expect("a place"))
}

async fn zooms(browser: &Browser) {
    let (from, to) = span(browser).await;
    let (x, y) = centre(browser, "#chart").await;
    browser.point(x, y).await;
    let under = format!("longshore.view.from + ({x} - longshore.view.left) * longshore.view.perPixel");
    let before = browser.run(&format!("return {under};")).await.as_f64().expect("a time");
    let wheel = serde_json::json!([
        { "type": "key", "id": "keys", "actions": [{ "type": "keyDown", "value": "\u{e009}" }, { "type": "pause", "duration": 0 }, { "type": "keyUp", "value": "\u{e009}" }] },
        { "type": "wheel", "id": "wheel", "actions": [
            { "type": "pause", "duration": 0 },
            { "type": "scroll", "x": x.round() as i64, "y": y.round() as i64, "deltaX": 0, "deltaY": -240 },
            { "type": "pause", "duration": 0 }
        ] }
    ]);
    browser.act(wheel).await;
    browser.until(&format!("longshore.view.to - longshore.view.from < {}", (to - from) * 0.95)).await;
    let after = browser.run(&format!("return {under};")).await.as_f64().expect("a time");
    let near = (to - from) / 200.0;
    assert!((before - after).abs() < near, "the time under the pointer stays there: {before} {after}");

    browser.run("document.querySelector('#chart').focus();").await;
    browser.press("www").await;
    let (closer_from, closer_to) = {
        browser.until(&format!("longshore.view.to - longshore.view.from < {}", (to - from) * 0.5)).await;
        span(browser).await
    };
    browser.press("d").await;
    browser.until(&format!("longshore.view.from > {}", closer_from + (closer_to - closer_from) / 20.0)).await;
    browser.press("0").await;
    browser
        .until(&format!(
            "Math.abs(longshore.view.to - {to}) < 1 && Math.abs(longshore.view.from - {from}) < 1"
        ))
        .await;
}

async fn drags(browser: &Browser) {
    browser.run("const { end } = longshore.trace; longshore.show(end * 0.4, end * 0.5);").await;
    let (from, _) = span(browser).await;
    let per_pixel = browser.run("return longshore.view.perPixel;").await.as_f64().expect("a number");
    let (x, y) = centre(browser, "#chart").await;
    browser.drag((x, y), (x - 200.0, y)).await;
    browser
        .until(&format!("Math.abs(longshore.view.from - {}) < {}", from + 200.0 * per_pixel, 2.0 * per_pixel))
        .await;

    // On the axis a part is marked, and then it is all that is to be seen.
    let top = browser.run("return document.querySelector('#chart').getBoundingClientRect().y + 10;").await;
    let (from, to) = span(browser).await;
    browser.drag((x, top.as_f64().expect("a place")), (x + 100.0, top.as_f64().expect("a place"))).await;
    let wanted = 100.0 * per_pixel;
    browser
        .until(&format!("Math.abs(longshore.view.to - longshore.view.from - {wanted}) < {}", 3.0 * per_pixel))
        .await;
    let (closer_from, closer_to) = span(browser).await;
    assert!(closer_from > from && closer_to < to);

    // Only lanes in which something happens then.
    let lanes = browser.run("return longshore.layout.items.length;").await.as_u64().expect("a number");
    browser.press("l").await;
    browser
        .until(&format!(
            "longshore.layout.items.length < {} && longshore.layout.items.length > 3",
            lanes / 10
        ))
        .await;
    browser.press("l0").await;
    browser.until(&format!("longshore.layout.items.length === {lanes}")).await;
}

async fn searches(browser: &Browser) {
    let task = browser.run("return longshore.trace.lanes.at(-500).label;").await;
    let task = task.as_str().expect("a label").to_owned();
    browser.press("/").await;
    browser.until("document.activeElement.id === 'query'").await;
    browser.press(&task).await;
    browser.press(ENTER).await;
    browser.until("longshore.search.at === 0 && longshore.selection.bar >= 0").await;
    let found = browser.run("return [longshore.trace.lanes[longshore.selection.lane].label, document.querySelector('#hits').textContent, longshore.search.hits.length];").await;
    assert_eq!(found[0].as_str(), Some(task.as_str()));
    let hits = found[2].as_u64().expect("a number");
    assert!(hits > 1);
    assert_eq!(found[1].as_str(), Some(format!("1/{hits}").as_str()));
    let seen = "(() => { const bar = longshore.selection.bar, { begin, end } = longshore.trace.bars; return end[bar] >= longshore.view.from && begin[bar] <= longshore.view.to; })()";
    browser.until(seen).await;
    browser.press(ENTER).await;
    browser.until("longshore.search.at === 1").await;
    browser.run("document.querySelector('#query').value = 'no such thing'; document.querySelector('#search').requestSubmit();").await;
    browser.until("document.querySelector('#hits').textContent === 'none'").await;
    browser
        .run(
            "document.querySelector('#query').value = ''; document.querySelector('#search').requestSubmit();",
        )
        .await;
    browser
        .until("longshore.search.hits.length === 0 && document.querySelector('#hits').textContent === ''")
        .await;
}

async fn hovers_and_selects(browser: &Browser) {
    // A wide bar of a lane at the top, in its middle.
    let place = browser
        .run(
            "const { trace, layout, view, show } = longshore; document.querySelector('#stage').scrollTop = 0;
             const lane = trace.lanes.find((it) => it.label === 'slot 0'); const bar = trace.rows.start[lane.firstRow] + 5;
             const { begin, end } = trace.bars; const long = end[bar] - begin[bar]; show(begin[bar] - long, end[bar] + long);
             await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame);
             const box = document.querySelector('#chart').getBoundingClientRect();
             const x = box.x + view.left + ((begin[bar] + end[bar]) / 2 - view.from) / view.perPixel;
             return [x, box.y + 30 + layout.items[layout.places.get(lane.number)].y + 10, bar, trace.texts[trace.bars.label[bar]]];",
        )
        .await;
    let (x, y) = (place[0].as_f64().expect("x"), place[1].as_f64().expect("y"));
    browser.point(x, y).await;
    browser.until("!document.querySelector('#tip').hidden").await;
    let tip = browser.run("return document.querySelector('#tip').textContent;").await;
    let label = place[3].as_str().expect("a text");
    assert!(tip.as_str().is_some_and(|tip| tip.contains(&format!("slot in use: {label}"))), "{tip}");
    browser.click().await;
    browser.until(&format!("longshore.selection.bar === {}", place[2])).await;
    let details = browser.run("return document.querySelector('#details').textContent;").await;
    assert!(
        details.as_str().is_some_and(|text| text.contains(label) && text.contains("First step")),
        "{details}"
    );

    // Its first step is one press away, and so is the bar from there.
    browser.run("document.querySelector('#details .link').click();").await;
    browser.until(&format!("longshore.selection.step === longshore.trace.bars.first[{}]", place[2])).await;
    browser.until("document.querySelector('#table-body .row.chosen')").await;
    browser.run("document.querySelector('#chart').focus();").await;
    browser.press("\u{e013}").await;
    browser.until("longshore.selection.bar >= 0").await;
    browser.press("\u{e014}").await;
    let said = browser.run("return document.querySelector('#said').textContent;").await;
    assert!(said.as_str().is_some_and(|text| !text.is_empty()), "what is selected is said");
}

async fn scrolls_the_table(browser: &Browser) {
    browser.run("document.querySelector('#table').scrollTop = 1e9;").await;
    browser.until(&format!("[...document.querySelectorAll('#table-body .row')].some((row) => row.firstChild.textContent === '{STEPS}')")).await;
    let rows = browser.run("return document.querySelectorAll('#table-body .row').length;").await;
    assert!(rows.as_u64().is_some_and(|rows| (3..200).contains(&rows)), "{rows}");
    browser.run("document.querySelector('#table').focus();").await;
    browser.press("\u{e010}").await;
    browser.until(&format!("longshore.selection.step === {STEPS}")).await;
    browser.press("\u{e013}").await;
    browser.until(&format!("longshore.selection.step === {}", STEPS - 1)).await;
    let chosen = "document.querySelector('#table-body .row.chosen')";
    let index = browser.run(&format!("return {chosen}.getAttribute('aria-rowindex');")).await;
    assert_eq!(index.as_str(), Some((STEPS + 1).to_string().as_str()));
}

async fn shows_violations(browser: &Browser) {
    let count = browser.run("return longshore.trace.violations.length;").await;
    assert!(count.as_u64().is_some_and(|count| count > 0), "{count}");
    browser.run("document.querySelector('#broken').click();").await;
    browser.until("longshore.selection.step === longshore.trace.violations[0].step").await;
    let listed = browser.run("return [document.querySelectorAll('#panel-violations li').length, document.querySelector('#panel-violations').hidden];").await;
    assert_eq!((&listed[0], &listed[1]), (&count, &Value::Bool(false)));
    browser.run("document.querySelector('#tab-steps').click();").await;
    browser.until("document.querySelector('#table-body .row.broken.chosen')").await;
    is_readable(browser).await;
}

/// Every column of the chosen row has the colour that goes with its ground.
async fn is_readable(browser: &Browser) {
    let colours = "const row = document.querySelector('#table-body .row.chosen'), of = (it) => getComputedStyle(it).color; return [of(row), [...new Set([...row.children].map(of))]];";
    let colours = browser.run(colours).await;
    assert_eq!(colours[1], serde_json::json!([colours[0]]));
}

async fn explains_what_is_drawn(browser: &Browser) {
    let open = "return [longshore.trace.bars.flags.some((it) => it & 6), document.querySelector('#panel-legend').textContent];";
    let told = browser.run(open).await;
    assert_eq!(told[0], true, "what goes on at the end has no known end");
    let legend = told[1].as_str().expect("a text");
    assert!(legend.contains("beginning or end is not known"), "{legend}");
    assert!(!legend.contains("or outside"), "all of the trace is drawn: {legend}");
}

async fn is_light_and_dark(browser: &Browser) {
    let ground = "return getComputedStyle(document.body).backgroundColor;";
    assert_eq!(browser.run(ground).await, "rgb(255, 255, 255)");
    browser.prefer("dark").await;
    browser.until("document.documentElement.dataset.theme === 'dark'").await;
    is_readable(browser).await;
    let dark = browser.run(ground).await;
    assert_eq!(dark, "rgb(16, 21, 28)");
    let dot = "const canvas = document.querySelector('#chart'); await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame); return [...canvas.getContext('2d').getImageData(2, 2, 1, 1).data].slice(0, 3);";
    assert_eq!(browser.run(dot).await, serde_json::json!([16, 21, 28]), "the canvas too");
    browser.run("document.querySelector('#theme').click();").await;
    browser.until("document.documentElement.dataset.theme === 'light'").await;
}

async fn moves_smoothly(browser: &Browser) {
    for share in [1.0, 0.3, 0.01] {
        let body = format!(
            "const {{ trace, show, drawn }} = longshore, span = trace.end * {share}; const times = []; let last = performance.now(), most = 0;
             for (let i = 0; i < 60; i++) {{
               const from = (trace.end - span) * i / 60 - i; show(from, from + span * (1 - i / 1000));
               await new Promise(requestAnimationFrame); const now = performance.now(); times.push(now - last); last = now; most = Math.max(most, drawn.shapes);
             }}
             times.sort((a, b) => a - b); return [times[30], times[54], times[59], most];"
        );
        let frames = browser.run(&body).await;
        let [half, most, worst] = [0, 1, 2].map(|i| frames[i].as_f64().expect("a time"));
        println!(
            "{:>5} % in sight: frames of {half:.1} ms (median), {most:.1} ms (90 %), {worst:.1} ms (worst), {} shapes",
            share * 100.0,
            frames[3]
        );
        assert!(half < FRAME, "half of the frames take {half} ms or more");
        assert!(
            frames[3].as_u64().is_some_and(|shapes| shapes < 60_000),
            "what is not to be seen is not drawn: {}",
            frames[3]
        );
    }
}

async fn asks_nobody(browser: &Browser) {
    // Whatever got into the page could not either.
    let refused = browser
        .run(
            "const refused = new Promise((done) => document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective)));
             try { await fetch('http://127.0.0.1:9/'); return 'sent'; } catch { return await refused; }",
        )
        .await;
    assert_eq!(refused, "connect-src");
    let ran = "const script = document.createElement('script'); script.textContent = 'globalThis.stranger = 1'; document.body.append(script); return globalThis.stranger ?? 'not run';";
    assert_eq!(browser.run(ran).await, "not run");
    for entry in browser.log("performance").await {
        let message: Value = serde_json::from_str(entry["message"].as_str().expect("text")).expect("JSON");
        let (method, asked) = (&message["message"]["method"], &message["message"]["params"]);
        // Pages of its own, such as the first one, are the browser's business.
        let foreign = asked["documentURL"].as_str().is_some_and(|url| url.starts_with("chrome:"));
        if method == "Network.requestWillBeSent" && !foreign {
            let url = asked["request"]["url"].as_str().expect("a URL");
            let local = url.starts_with("file:") || url.starts_with("data:");
            assert!(local || url == "http://127.0.0.1:9/", "{url}");
        }
    }
    let errors: Vec<_> = browser
        .log("browser")
        .await
        .into_iter()
        .filter(|entry| entry["level"] == "SEVERE")
        // The two that were provoked here.
        .filter(|entry| {
            !entry["message"]
                .as_str()
                .is_some_and(|text| text.contains("Content Security Policy") || text.contains("127.0.0.1:9"))
        })
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}
