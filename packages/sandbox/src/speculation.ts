// What a worker can reach of the kernel's speculation controls, told from the words that the kernel uses about the
// parent in /proc/self/status. The worker asks for the strongest setting; which value it then reads back is decided by
// processor, kernel and boot options alone, so the parent knows it beforehand.
// Called by the compiler. Pure.

/** Bits of PR_GET_SPECULATION_CTRL. */
const PRCTL = 1;
const ENABLE = 2;
const DISABLE = 4;
const FORCE_DISABLE = 8;

/** Whatever a thread could choose, the worker has chosen: off, for good. */
const FORCED_OFF = PRCTL | FORCE_DISABLE;

/** Reported where the kernel does not know the control; the same as "not affected", which it cannot tell apart. */
const UNKNOWN = 0;

const STORE_BYPASS: Readonly<Record<string, number>> = {
  unknown: UNKNOWN,
  "not vulnerable": 0,
  "thread force mitigated": FORCED_OFF,
  "thread mitigated": FORCED_OFF,
  "thread vulnerable": FORCED_OFF,
  "globally mitigated": DISABLE,
  vulnerable: ENABLE,
};

const INDIRECT_BRANCH: Readonly<Record<string, number>> = {
  unsupported: UNKNOWN,
  unknown: UNKNOWN,
  "not affected": 0,
  "conditional force disabled": FORCED_OFF,
  "conditional disabled": FORCED_OFF,
  "conditional enabled": FORCED_OFF,
  "always disabled": DISABLE,
  "always enabled": ENABLE,
};

function expected(words: Readonly<Record<string, number>>, word: string | undefined): number {
  if (word === undefined || !Object.hasOwn(words, word)) return UNKNOWN;
  return words[word] ?? UNKNOWN;
}

/** The two facts of a Welcome, from the parent's own words. */
export function speculationFacts(parent: {
  readonly storeBypass: string | undefined;
  readonly indirectBranch: string | undefined;
}): { readonly specStoreBypass: number; readonly specIndirectBranch: number } {
  return {
    specStoreBypass: expected(STORE_BYPASS, parent.storeBypass),
    specIndirectBranch: expected(INDIRECT_BRANCH, parent.indirectBranch),
  };
}

/** The words that the kernel may use about a worker whose fact is the given one. */
export function speculationWords(control: "storeBypass" | "indirectBranch", fact: number): readonly string[] {
  const words = control === "storeBypass" ? STORE_BYPASS : INDIRECT_BRANCH;
  // A thread that forced the mitigation is described by that word alone.
  if (fact === FORCED_OFF)
    return [control === "storeBypass" ? "thread force mitigated" : "conditional force disabled"];
  return Object.keys(words).filter((word) => words[word] === fact);
}
