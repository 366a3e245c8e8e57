// Pictures of cards: what a card shows, drawn once more on a canvas, whole and
// sharp, in the colours of the page. Boxes and words stand where the browser
// put them; charts draw themselves again at the picture's size. Buttons and
// fields are left out, but for what is chosen in them.

const finest = 2; // pixels of the picture for each CSS pixel
const longestSide = 16000; // pixels: browsers refuse larger canvases
const foot = 26; // CSS pixels below the card, for the caption

const sources = new WeakMap(); // element -> what draws its content

/** Lets draw(scale) make the canvas of the element's content; it may be a promise that waits for no frame. */
export const drawnBy = (element, draw) => sources.set(element, draw);

/** A picture of the card with a line below it, as a canvas. */
export async function photograph(card, caption) {
  const frames = [...card.querySelectorAll(".table-frame, .chart-scroll")].map((frame) => [frame, frame.scrollLeft, frame.scrollTop]);
  const scrolled = [scrollX, scrollY];
  card.classList.add("photographed"); // until the next frame, so that nobody sees it
  try {
    return await paint(card, caption);
  } finally {
    card.classList.remove("photographed");
    for (const [frame, left, top] of frames) [frame.scrollLeft, frame.scrollTop] = [left, top];
    scrollTo(...scrolled);
  }
}

async function paint(card, caption) {
  const { left, top, width: shown, height } = card.getBoundingClientRect();
  const width = Math.max(shown, card.scrollWidth + 1);
  const scale = Math.min(finest, longestSide / width, longestSide / (height + foot));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((height + foot) * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.translate(-left, -top);
  const style = getComputedStyle(card);
  context.fillStyle = style.backgroundColor;
  context.fillRect(left, top, width, height + foot);
  const charts = [];
  for (const child of card.childNodes) visit(child, style, context, charts);
  for (const [element, draw] of charts) {
    const box = element.getBoundingClientRect();
    const drawn = await draw(scale);
    context.drawImage(drawn, box.left, box.top, drawn.width / scale, drawn.height / scale);
  }
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--muted");
  context.font = `11px ${style.fontFamily}`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.fillText(caption, left + Number.parseFloat(style.paddingLeft || "0") + 1, top + height + foot - 10);
  return canvas;
}

/** Draws a node and what is in it; style is its parent's. */
function visit(node, style, context, charts) {
  if (node.nodeType === Node.TEXT_NODE) {
    words(node, style, context);
  } else if (node.nodeType === Node.ELEMENT_NODE && !leftOut(node)) {
    element(node, context, charts);
  }
}

function leftOut(node) {
  if (node.matches(".menu, .unseen, input, textarea, [data-picture='none'], button:not([aria-pressed='true'])")) return true;
  return !node.checkVisibility({ visibilityProperty: true });
}

function element(node, context, charts) {
  if (sources.has(node) && node.querySelector("canvas")) { // else it says what will come, or nothing yet
    charts.push([node, sources.get(node)]);
    return;
  }
  const style = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  context.save();
  context.globalAlpha *= Number(style.opacity);
  if (!node.matches("select, button")) frame(box, style, context);
  if (style.overflowX === "hidden" || style.overflowX === "clip") {
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
  }
  if (node.tagName === "PROGRESS") filled(node, box, style, context);
  else if (node.tagName === "SELECT") chosen(node, box, style, context);
  else for (const child of node.childNodes) visit(child, style, context, charts);
  context.restore();
}

const sides = ["Top", "Right", "Bottom", "Left"];
const transparent = (colour) => colour === "transparent" || colour === "rgba(0, 0, 0, 0)";

/** A box's background and borders. */
function frame(box, style, context) {
  if (box.width === 0 || box.height === 0) return;
  const given = style.borderTopLeftRadius;
  const radius = Math.min(given.endsWith("%") ? Number.parseFloat(given) / 100 * box.width : Number.parseFloat(given) || 0, box.width / 2, box.height / 2);
  if (!transparent(style.backgroundColor)) {
    context.fillStyle = style.backgroundColor;
    context.beginPath();
    context.roundRect(box.left, box.top, box.width, box.height, radius);
    context.fill();
  }
  const edges = sides.map((side) => ({ side, width: style[`border${side}Style`] === "none" ? 0 : Number.parseFloat(style[`border${side}Width`]), colour: style[`border${side}Color`] }));
  if (radius > 0 && edges.every(({ width }) => width > 0)) {
    const { width, colour } = edges[0];
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.roundRect(box.left + width / 2, box.top + width / 2, box.width - width, box.height - width, Math.max(0, radius - width / 2));
    context.stroke();
    return;
  }
  for (const { side, width, colour } of edges) {
    if (width === 0 || transparent(colour)) continue;
    context.fillStyle = colour;
    const [x, y] = [side === "Right" ? box.right - width : box.left, side === "Bottom" ? box.bottom - width : box.top];
    const upright = side === "Left" || side === "Right";
    context.fillRect(x, y, upright ? width : box.width, upright ? box.height : width);
  }
}

/** A progress bar: browsers do not tell the colours of its parts, so its own colour is that of the done part. */
function filled(node, box, style, context) {
  context.fillStyle = style.color;
  context.beginPath();
  context.roundRect(box.left, box.top, box.width * Math.max(0, node.position), box.height, Number.parseFloat(style.borderTopLeftRadius) || 0);
  context.fill();
}

const fontOf = (style) => `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;

function chosen(node, box, style, context) {
  context.font = fontOf(style);
  context.fillStyle = style.color;
  context.textBaseline = "middle";
  context.fillText(node.selectedOptions[0]?.text ?? "", box.left + Number.parseFloat(style.paddingLeft), box.top + box.height / 2);
}

/** Words one by one, where the browser has them: so lines break where they do on the page. */
function words(node, style, context) {
  const range = document.createRange();
  context.font = fontOf(style);
  context.fillStyle = style.color;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  const { fontBoundingBoxAscent: above, fontBoundingBoxDescent: below } = context.measureText("x");
  const place = (text, at) => {
    range.setStart(node, at);
    range.setEnd(node, at + text.length);
    const boxes = range.getClientRects();
    if (boxes.length > 1 && text.length > 1) { // a word that was broken: letter by letter
      let next = at;
      for (const letter of text) {
        place(letter, next);
        next += letter.length;
      }
      return;
    }
    const [box] = boxes;
    if (box && box.width > 0) context.fillText(text, box.left, box.top + (box.height - above - below) / 2 + above);
  };
  for (const word of node.data.matchAll(/\S+/g)) place(word[0], word.index);
}
