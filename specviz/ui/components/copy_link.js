/** Copies the address of what is on the page, with the moment under the cursor; the server is not asked. */
export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".copy-link");
  const find = (selector) => root.querySelector(selector);
  const [button, field, why] = [find("button"), find("label"), find(".why")];
  const address = () => {
    const url = new URL(location.href);
    const moment = globalThis.specvizMoment; // the strip says it: this button stands outside the stage
    url.search = new URLSearchParams({ ...data.parameters, ...(moment ? { [data.moment]: moment } : {}) }).toString();
    url.hash = "";
    return url.href;
  };
  const say = (text) => {
    clearTimeout(root.timer);
    button.textContent = find("output").textContent = text;
    root.timer = setTimeout(() => {
      button.textContent = data.words.copy;
      find("output").textContent = "";
    }, 2000);
  };
  if (button.textContent !== data.words.copied) button.textContent = data.words.copy;
  button.disabled = Boolean(data.reason);
  why.textContent = data.reason;
  why.hidden = !data.reason;
  if (data.reason) field.hidden = true;
  if (!field.hidden) find("input").value = address();
  button.onclick = async () => {
    const text = address();
    field.hidden = true;
    try {
      await navigator.clipboard.writeText(text);
      say(data.words.copied);
    } catch {
      // No clipboard outside a secure context: an address on the local network, for one.
      find("label span").textContent = data.words.by_hand;
      field.hidden = false;
      find("input").value = text;
      find("input").select();
      if (document.execCommand("copy")) say(data.words.copied);
    }
  };
}
