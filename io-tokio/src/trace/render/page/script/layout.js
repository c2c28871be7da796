/* Where lanes are: heights, folded groups, and lanes that are left out while nothing happens in them. */

const THICK = 19, THIN = 6, LANE_PAD = 3, GROUP_HEIGHT = 26;

const layout = {
  /** What is drawn from top to bottom: `{ y, height, lane }` or `{ y, height, group }`. */
  items: [],
  /** Those of them that are groups. */
  heads: [],
  tops: [],
  /** Position in `items` of a lane, by its number. */
  places: new Map(),
  height: 0,
  onlyInView: false,
};

function laneHeight(lane) {
  return 2 * LANE_PAD + lane.thick * THICK + lane.thin * THIN;
}

/** Lays all lanes out; those without anything from `from` to `to` are left out if that is asked for. */
function layOut(trace, from, to) {
  const { items, places } = layout;
  items.length = 0;
  places.clear();
  let y = 0, odd = false;
  trace.groups.forEach((group, g) => {
    if (group.count === 0) return;
    odd = false;
    const head = { y, height: GROUP_HEIGHT, group: g, shown: 0 };
    items.push(head);
    y += GROUP_HEIGHT;
    for (let i = group.first; i < group.first + group.count; i++) {
      const lane = trace.lanes[i];
      const idle = lane.to < from || lane.from > to;
      if (layout.onlyInView && idle && !(selection.lane === i)) continue;
      head.shown += 1;
      if (group.folded) continue;
      places.set(i, items.length);
      items.push({ y, height: laneHeight(lane), lane: i, odd });
      odd = !odd;
      y += laneHeight(lane);
    }
    head.end = y;
  });
  layout.height = y;
  layout.heads = items.filter((item) => item.lane === undefined);
  layout.tops = items.map((item) => item.y);
}

/** The first item that reaches below `y`. */
function itemAt(y) {
  const next = lowerBound(layout.tops, y + 1e-6);
  return Math.max(0, next - 1);
}
