/** Brings a part of the page into view, once a request. */
export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector("span");
  if (root.request === data.request) return;
  root.request = data.request;
  if (!data.part) return;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const look = (tries) => {
    const part = document.querySelector(`.st-key-${data.part}`);
    if (part) part.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: data.block });
    else if (tries) requestAnimationFrame(() => look(tries - 1));
  };
  requestAnimationFrame(() => look(60));
}
