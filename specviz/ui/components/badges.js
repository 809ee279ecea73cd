/** Badges: where the numbers of this page come from. */
export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".badges");
  root.replaceChildren(...data.badges.map((text) => make("span", "badge", text)));
}
