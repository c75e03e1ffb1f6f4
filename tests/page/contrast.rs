//! All text can be read, in light, in dark and on paper.

use serde_json::json;

use crate::reports::boot;
use crate::tab::{Tab, open};

/// WCAG 2, level AA.
const ENOUGH: f64 = 4.5;

/// Each visible text with its contrast against everything it may stand on. Text in the picture crosses the
/// ground of folds and the bands of long tasks.
const LOOK: &str = r#"(() => {
  const parse = (color) => {
    const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const grounds = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const color = parse(getComputedStyle(e).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    const base = layers.reverse().reduce((under, color) => over(color, under), [255, 255, 255, 1]);
    if (!element.closest('.chart svg')) return [base];
    const fills = ['.fold', '.band', '.hover'].map((kind) => document.querySelector('#chart ' + kind)).filter(Boolean);
    return [base, ...fills.map((e) => over(parse(getComputedStyle(e).fill), base))];
  };
  const said = [];
  const look = (element, color, text) => {
    if (color[3] < 1) throw new Error('a translucent colour: ' + text);
    for (const ground of grounds(element)) said.push([ratio(color, ground), text]);
  };
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join('');
    if (!own || !element.checkVisibility() || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(element.nodeName)) continue;
    const style = getComputedStyle(element);
    look(element, parse(element instanceof SVGElement ? style.fill : style.color), own.slice(0, 40));
  }
  const search = document.getElementById('search');
  if (search.checkVisibility()) look(search, parse(getComputedStyle(search, '::placeholder').color), 'placeholder');
  return said;
})()"#;

#[track_caller]
fn readable(tab: &mut Tab) {
    let said = tab.eval(LOOK);
    let said = said.as_array().expect("a list");
    assert!(said.len() > 150, "only {} texts were looked at", said.len());
    for text in said {
        let ratio = text[0].as_f64().expect("a ratio");
        assert!(ratio >= ENOUGH, "{}: {ratio:.2}", text[1]);
    }
}

#[test]
fn all_text_is_readable_in_light_in_dark_and_on_paper() {
    let mut tab = open(&boot());
    // With everything on: a tip, a hovered row.
    tab.eval("document.querySelectorAll('#bars .bar.critical')[0].focus()");
    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        tab.scheme(scheme);
        tab.settle();
        readable(&mut tab);
        grounds.push(tab.text("getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(grounds[0], grounds[1], "dark is not light");
    let media =
        json!({ "media": "print", "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    tab.send("Emulation.setEmulatedMedia", media);
    readable(&mut tab);
}
