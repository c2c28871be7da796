/* Light and dark: colours of the data as variables of the style sheet, and as they are for the canvas. */

const theme = {
  dark: false,
  colours: {},
  bars: [],
  marks: [],
  arrows: [],
  hatch: null,
};

function isDark() {
  try {
    const said = localStorage.getItem('longshore-theme');
    if (said === 'dark' || said === 'light') return said === 'dark';
  } catch { /* A page of a file may have no storage. */ }
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

function setTheme(looks, dark) {
  theme.dark = dark;
  const name = dark ? 'dark' : 'light';
  theme.colours = { ...looks[name], hit: dark ? '#6a5200' : '#ffe27a' };
  theme.bars = looks.bars.map((look) => ({ ...look, fill: look[name][0], text: look[name][1] }));
  theme.marks = looks.marks.map((look) => ({ ...look, fill: look[name] }));
  theme.arrows = looks.arrows.map((look) => ({ ...look, stroke: look[name] }));
  const root = document.documentElement;
  root.dataset.theme = name;
  root.style.colorScheme = name;
  for (const [key, value] of Object.entries(theme.colours)) root.style.setProperty(`--${key}`, value);
  theme.hatch = hatchPattern(dark ? '#ffffff40' : '#0000003d');
  theme.void = hatchPattern(dark ? '#ffffff26' : '#00000026');
}

function switchTheme(looks) {
  setTheme(looks, !theme.dark);
  try {
    localStorage.setItem('longshore-theme', theme.dark ? 'dark' : 'light');
  } catch { /* Then it is for this time only. */ }
}

function hatchPattern(colour) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const ctx = tile.getContext('2d');
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.6;
  ctx.beginPath();
  for (const at of [-8, 0, 8]) {
    ctx.moveTo(at - 1, 9);
    ctx.lineTo(at + 9, -1);
  }
  ctx.stroke();
  return ctx.createPattern(tile, 'repeat');
}
