/** One card of the guided tour; see specviz/ui/cards.py. */
export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".card");
  const find = (selector) => root.querySelector(selector);
  find(".count").textContent = data.count;
  find("h2").textContent = data.title;
  find(".text").replaceChildren(...spans(data.text));
  find(".task").replaceChildren(...spans(data.task));
  find(".task").classList.toggle("reached", data.reached);
  const [next, close] = [find(".next"), find(".close")];
  next.textContent = data.next;
  next.hidden = !data.next;
  next.classList.toggle("reached", data.reached);
  next.onclick = () => setTriggerValue("turned", 1);
  close.textContent = data.close;
  close.onclick = () => setTriggerValue("turned", 0);
}
