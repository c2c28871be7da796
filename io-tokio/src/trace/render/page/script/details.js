/* Words about what is selected or under the pointer. Texts of the trace only ever become text nodes. */

/** An element with properties and children; children are nodes or texts. */
function element(name, properties = {}, ...children) {
  const it = Object.assign(document.createElement(name), properties);
  it.append(...children.filter((child) => child !== null && child !== undefined));
  return it;
}

function link(text, act) {
  return element('button', { type: 'button', className: 'link', textContent: text, onclick: act });
}

function swatch(look) {
  const it = element('span', { className: look.thin ? 'swatch thin' : 'swatch' });
  it.style.background = look.fill;
  return it;
}

function definitions(pairs) {
  const list = element('dl');
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === '') continue;
    list.append(element('dt', {}, name), element('dd', {}, value));
  }
  return list;
}

/** What a bar is, in short texts. */
function describeBar(bar) {
  const { bars } = trace;
  const kind = theme.bars[bars.kind[bar]].name, text = trace.texts[bars.label[bar]];
  const lane = trace.lanes[laneOfBar(bar)];
  return [text === kind || text === '' ? kind : `${kind}: ${text}`, durationOfBar(bar), lane.label];
}

function durationOfBar(bar) {
  const { bars } = trace, flags = bars.flags[bar];
  const long = durationText(bars.end[bar] - bars.begin[bar]);
  return flags & (OPEN_BEGIN | OPEN_END) ? `at least ${long}` : long;
}

/** Pairs of names and values that the data has for a bar. */
function detailOf(bar) {
  const list = trace.lists[trace.bars.detail[bar]];
  const pairs = [];
  for (let i = 0; i < list.length; i += 2) pairs.push([trace.texts[list[i]], trace.texts[list[i + 1]]]);
  return pairs;
}

function when(at) {
  const wall = wallText(trace, at);
  return wall === '' ? exactTime(at) : `${exactTime(at)} (${wall})`;
}

function stepName(step) {
  const { steps } = trace;
  return steps.lives > 1 ? `${steps.n[step]} of life ${steps.life[step] + 1}` : String(steps.n[step]);
}

function stepLink(step, lane) {
  return step === NONE ? 'not recorded' : link(stepName(step), () => selectStep(step, { bring: true, lane }));
}

function showDetails() {
  const panel = document.getElementById('details');
  const content = selection.bar !== NONE ? barDetails(selection.bar) : selection.step !== NONE ? stepDetails(selection.step) : nothingDetails();
  panel.replaceChildren(...content);
  panel.scrollTop = 0;
}

function nothingDetails() {
  return [
    element('h2', {}, 'Nothing is selected'),
    element('p', { className: 'faint' }, 'Choose a bar of the timeline or a row of the table. Drag to move, Ctrl and wheel to zoom, / to search, ? for all keys.'),
  ];
}

function barDetails(bar) {
  const { bars } = trace;
  const look = theme.bars[bars.kind[bar]], lane = trace.lanes[laneOfBar(bar)], flags = bars.flags[bar];
  const text = trace.texts[bars.label[bar]];
  const parts = [
    element('h2', {}, swatch(look), text === '' ? look.name : text),
    definitions([
      ['What', look.name + (flags & FAILED ? ', ended badly' : '')],
      ['Lane', element('span', { className: 'id' }, lane.note === '' ? lane.label : `${lane.label} · ${lane.note}`)],
      ['Took', durationOfBar(bar)],
      ['Began', (flags & OPEN_BEGIN ? 'before ' : '') + when(bars.begin[bar])],
      ['Ended', (flags & OPEN_END ? 'not before ' : '') + when(bars.end[bar])],
      ['First step', bars.first[bar] === NONE && flags & OPEN_BEGIN ? 'earlier' : stepLink(bars.first[bar], lane.number)],
      ['Last step', bars.last[bar] === NONE && flags & OPEN_END ? 'not over' : stepLink(bars.last[bar], lane.number)],
      ...detailOf(bar),
    ]),
  ];
  const led = trace.arrows.filter((arrow) => touches(arrow, lane.number, bar));
  if (led.length > 0) {
    parts.push(element('h3', {}, 'What led to what'));
    parts.push(element('ul', {}, ...led.slice(0, 20).map((arrow) => element('li', {}, arrowLink(arrow, lane.number)))));
  }
  return parts;
}

function touches(arrow, lane, bar) {
  const { begin, end } = trace.bars;
  const within = (at) => at >= begin[bar] && at <= end[bar];
  return (arrow.fromLane === lane && within(arrow.from)) || (arrow.toLane === lane && within(arrow.to));
}

function arrowLink(arrow, lane) {
  const out = arrow.fromLane === lane;
  const other = out ? arrow.toLane : arrow.fromLane, at = out ? arrow.to : arrow.from;
  const text = `${theme.arrows[arrow.kind].name}: ${out ? 'to' : 'from'} ${trace.lanes[other].label} at ${exactTime(at)}`;
  return link(text, () => {
    const bar = nearestBar(trace.lanes[other].firstRow, at);
    if (bar !== NONE) selectBar(bar, { bring: true });
    else if (arrow.step !== NONE) selectStep(arrow.step, { bring: true, lane: other });
  });
}

function stepDetails(step) {
  const { steps, texts, lists, bars } = trace;
  const parts = [
    element('h2', {}, `Step ${stepName(step)}`),
    definitions([['When', when(steps.at[step])], ['What happened', texts[steps.event[step]]]]),
  ];
  for (const broken of trace.violations.filter((it) => it.step === step)) {
    parts.push(element('h3', { className: 'alarm' }, `Violation of ${broken.rule}`), element('div', {}, broken.story), element('div', { className: 'faint' }, broken.says));
  }
  const effects = lists[steps.effects[step]];
  parts.push(element('h3', {}, effects.length === 0 ? 'Nothing was done about it' : 'What was done about it'));
  parts.push(element('ul', {}, ...effects.map((text) => element('li', {}, texts[text]))));
  const about = [];
  for (let i = 0; i < bars.count && about.length < 40; i++) {
    if (bars.first[i] === step || bars.last[i] === step) about.push(i);
  }
  if (about.length > 0) {
    parts.push(element('h3', {}, 'Begins or ends here'));
    parts.push(element('ul', {}, ...about.map((bar) => element('li', {}, link(
      `${bars.last[bar] === step ? (bars.first[bar] === step ? 'all of' : 'end of') : 'begin of'} ${describeBar(bar).join(', ')}`,
      () => selectBar(bar, { bring: true }),
    )))));
  }
  return parts;
}

/** What is under the pointer, for the tooltip; `null` if that needs no words. */
function tipOf(found) {
  if (!found) return null;
  if (found.violation) {
    const all = found.violations ?? [found.violation];
    return all.slice(0, 6).flatMap((it) => [element('div', { className: 'what alarm' }, `${it.number}: ${it.rule}`), element('div', {}, it.story)]);
  }
  if (found.mark) {
    const look = theme.marks[found.mark.kind];
    return [element('div', { className: 'what' }, look.name), element('div', {}, found.mark.label), element('div', { className: 'faint' }, exactTime(found.mark.at))];
  }
  if (found.bar !== undefined) {
    const [what, long] = describeBar(found.bar), { begin, end } = trace.bars;
    const lines = detailOf(found.bar).slice(0, 5).map(([name, value]) => element('div', {}, element('span', { className: 'faint' }, `${name} `), value));
    return [
      element('div', { className: 'what' }, swatch(theme.bars[trace.bars.kind[found.bar]]), `${what} · ${long}`),
      element('div', { className: 'faint' }, `${exactTime(begin[found.bar])} to ${exactTime(end[found.bar])}`),
      ...lines,
    ];
  }
  if (found.lane !== undefined && pointer && pointer.x < view.left) {
    const lane = trace.lanes[found.lane];
    return [element('div', { className: 'what id' }, lane.label), lane.note === '' ? element('div') : element('div', { className: 'faint' }, lane.note)];
  }
  if (pointer && pointer.x >= view.left) {
    const hole = trace.unknown.find((it) => it.begin <= timeAt(pointer.x) && timeAt(pointer.x) <= it.end);
    if (hole) return [element('div', { className: 'what' }, 'Nothing is known'), element('div', {}, hole.why)];
  }
  return null;
}
