// Finds object keys that a JSON text writes twice. JSON.parse keeps the last of them without a word, so a policy
// whose first line says one thing and whose last line says another would read as if only the last were there.
// Called by the policy reader, after JSON.parse has accepted the text: the scan may rely on its grammar.

/** Finds the first duplicate key; the answer is its path such as `limits.cpuMs`, or undefined when there is none. */
export function duplicateKey(validJson: string): string | undefined {
  const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;
  // One entry per open bracket; `keys` is absent for arrays.
  const open: { keys?: Set<string>; name: string }[] = [];
  let expectsKey = false;
  let name = "";
  for (let match = tokens.exec(validJson); match !== null; match = tokens.exec(validJson)) {
    const token = match[0];
    const top = open.at(-1);
    if (token === "{") {
      open.push({ keys: new Set(), name });
      expectsKey = true;
    } else if (token === "[") {
      open.push({ name });
      expectsKey = false;
    } else if (token === "}" || token === "]") {
      open.pop();
      expectsKey = false;
    } else if (token === ",") {
      expectsKey = top?.keys !== undefined;
    } else if (token !== ":" && expectsKey && top?.keys !== undefined) {
      // A string token of valid JSON always parses to a string.
      name = String(JSON.parse(token));
      if (top.keys.has(name)) {
        return [...open.slice(1).map((entry) => entry.name), name].join(".");
      }
      top.keys.add(name);
      expectsKey = false;
    }
  }
  return undefined;
}
