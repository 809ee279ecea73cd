/** The coin panel; see specviz/figures/coin.py. */
const GLYPHS = __GLYPHS__;
const WORDS = __WORDS__;

const fate = (name) => make("span", `fate ${name}`, make("span", "glyph", GLYPHS[name]), WORDS[name]);

const bar = (line) => {
  const node = make("span", "bar");
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", line.words);
  if (line.standing === "unjudged" && line.coin === null) node.append(area("unjudged", 1));
  else if (line.stays === null) node.append(area("waiting", 1));
  else {
    if (line.stays > 0) node.append(area("both", Math.min(line.stays, 1)));
    if (line.stays < 1) node.append(area("only_drafter"));
  }
  if (line.coin !== null) {
    const pin = make("span", "pin");
    pin.style.left = `${100 * line.coin}%`;
    node.append(pin);
  }
  return node;
};

const choice = (line, words) => {
  const other = line.other === null ? make("span", "muted small", words.not_yet) : make("span", "mono", line.other);
  return make("span", "choice", make("span", "muted small", words.target), other);
};

const row = (line, data) => {
  const node = make(
    "div", `line${line.current ? " current" : ""}`,
    make("span", "muted small", `${line.place}`),
    Object.assign(make("span", "token mono", line.draft), { title: line.draft }),
    data.chosen && line.standing !== "unjudged" ? choice(line, data.words) : bar(line),
    make("span", "words", line.words),
    fate(line.standing),
  );
  node.setAttribute("role", "listitem");
  return node;
};

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".coin");
  const find = (selector) => root.querySelector(selector);
  find("h2").textContent = data.title;
  if (!find(".legend")) find(".head").append(make("span", "legend"));
  find(".legend").replaceChildren(
    ...(data.chosen ? [] : [key("both", data.words.stays), key("only_drafter", data.words.goes), make("span", "", `┃ ${data.words.coin}`)]),
  );
  find(".note").replaceChildren(...spans(data.note));
  const closing = data.closing && make(
    "div", `line close${data.closing.current ? " current" : ""}`,
    make("span", "muted small", ""),
    Object.assign(make("span", "token mono", data.closing.token), { title: data.closing.token }),
    make("span", "words", data.closing.words),
    fate(data.closing.kind),
  );
  closing?.setAttribute("role", "listitem");
  find(".lines").replaceChildren(...data.lines.map((line) => row(line, data)), ...(closing ? [closing] : []));
  find(".formula").hidden = !data.formula;
  find(".formula").textContent = data.formula ?? "";
  twinTable(root, data.table, data.words.table);
}
