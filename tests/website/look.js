// Opens each page of the site in a frame, as wide as a laptop and as a phone, light and dark, and
// reports what a reader could not see: code that is cut off or scrolls, pages wider than the
// window, text that does not stand out from its ground.
const CONTRAST = 4.5, CONTRAST_OF_LARGE_TEXT = 3, LARGE = 24, LARGE_BOLD = 18.66;

function channels(colour) {
  const found = colour.match(/[\d.]+/g).map(Number);
  return [found[0], found[1], found[2], found.length > 3 ? found[3] : 1];
}

// Any notation of CSS as red, green, blue and opacity.
const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
const pen = canvas.getContext("2d", {willReadFrequently: true});
const known = new Map();
function rgba(colour) {
  if (!known.has(colour)) {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    known.set(colour, [red, green, blue, alpha / 255]);
  }
  return known.get(colour);
}

function over(above, below) {
  return [0, 1, 2].map(i => above[i] * above[3] + below[i] * (1 - above[3])).concat(1);
}

function ground(element, view) {
  const layers = [];
  for (let each = element; each; each = each.parentElement) {
    const colour = rgba(view.getComputedStyle(each).backgroundColor);
    if (colour[3] > 0) layers.push(colour);
    if (colour[3] === 1) break;
  }
  return layers.reverse().reduce((below, above) => over(above, below), [255, 255, 255, 1]);
}

function luminance(colour) {
  const [red, green, blue] = colour.map(value => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function* faint(view) {
  const root = view.document.querySelector("article");
  const walker = view.document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({opacityProperty: true})) continue;
    if (element.closest(".headerlink, button, nav")) continue;
    const style = view.getComputedStyle(element);
    const behind = ground(element, view);
    const key = `${style.color} on ${behind.map(Math.round)} ${style.fontSize} ${style.fontWeight}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const [a, b] = [luminance(over(rgba(style.color), behind)), luminance(behind)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= LARGE || (size >= LARGE_BOLD && style.fontWeight >= 700);
    const least = isLarge ? CONTRAST_OF_LARGE_TEXT : CONTRAST;
    if (ratio < least) {
      yield `contrast ${ratio.toFixed(2)}, at least ${least}: "${node.data.trim().slice(0, 40)}" ${key}`;
    }
  }
}

function* clipped(view) {
  for (const each of view.document.querySelectorAll("article pre, article pre > code")) {
    if (each.checkVisibility() && each.scrollWidth > each.clientWidth + 1) {
      yield `code is cut off: "${each.textContent.trim().slice(0, 60)}"`;
    }
  }
  const page = view.document.documentElement;
  if (page.scrollWidth > view.innerWidth + 1) {
    yield `the page is ${page.scrollWidth} pixels wide`;
  }
}

function loaded(frame, address) {
  return new Promise(resolve => {
    frame.onload = resolve;
    frame.src = address;
  });
}

async function look(pages) {
  const problems = [];
  for (const width of [1280, 390]) {
    const frame = Object.assign(document.createElement("iframe"), {width, height: 900});
    document.body.append(frame);
    for (const page of pages) {
      await loaded(frame, page);
      const view = frame.contentWindow;
      await view.document.fonts.ready;
      const say = text => problems.push(`${page}: ${width} pixels: ${text}`);
      if (!view.document.querySelector("article")) {
        say("there is no article");
        continue;
      }
      view.document.head.append(Object.assign(view.document.createElement("style"), {
        textContent: "* { transition: none !important; animation: none !important; }",
      }));
      for (const problem of clipped(view)) say(problem);
      for (const scheme of ["default", "slate"]) {
        view.document.body.setAttribute("data-md-color-scheme", scheme);
        for (const problem of faint(view)) say(`${scheme}: ${problem}`);
      }
    }
    frame.remove();
  }
  return problems;
}

fetch("/pages.json").then(answer => answer.json()).then(look)
  .catch(error => [`the check itself failed: ${error.stack}`])
  .then(problems => fetch("/problems", {method: "POST", body: JSON.stringify(problems)}));
