/**
 * Keeps a run's layout in the page, so that moving through it costs a few bytes: Streamlit does not send a message again
 * that the browser already has, and complete chunks never change.
 */
export default function ({ data: [data] }) {
  const runs = (globalThis.specvizRuns ??= new Map());
  for (const id of runs.keys()) if (id !== data.run) runs.delete(id);
  if (!runs.has(data.run)) runs.set(data.run, []);
  const chunks = runs.get(data.run);
  chunks[data.index] = data.chunk;
  delete chunks.rounds;
  chunks.length = Math.max(data.index + 1, Math.min(chunks.length, data.of));
  document.dispatchEvent(new CustomEvent("specviz-run"));
}
