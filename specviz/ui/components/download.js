/**
 * Saves a run as a file. It is asked for on the press and saved when it arrives: Streamlit's own download button loses
 * its file as soon as a press elsewhere reruns a fragment in which it does not stand.
 */
export default function ({ data: [data], parentElement, setTriggerValue }) {
  const button = parentElement.querySelector("button");
  button.textContent = data.label;
  button.onclick = () => setTriggerValue("wanted", true);
  if (data.content === null || button.saved === data.request) return;
  button.saved = data.request;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([data.content], { type: "application/jsonl" }));
  link.download = data.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
