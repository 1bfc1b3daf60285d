// Cases from public bug reports about other systems of this kind: number, where it was reported, and the test that shows how
// this system fares. reports.test.ts checks that each named test exists.

export interface Report {
  readonly number: number;
  readonly from: string;
  /** Names of guest cases (honest.ts, greedy.ts, hostile.ts), or of tests in the file named before a colon. */
  readonly tests: readonly string[];
  /** Why it is not tested here, for what needs a part of the system that is elsewhere. */
  readonly elsewhere?: string;
}

const file = {
  reports: "test/guests/reports.test.ts: ",
  sweeps: "test/guests/sweeps.test.ts: ",
  survival: "test/survival/survival.test.ts: ",
  approvals: "test/codemode/core-approvals.test.ts: ",
};

export const reports: readonly Report[] = [
  {
    number: 1,
    from: "sebastianwessel/quickjs#54: the process freezes",
    tests: ["an endless loop", `${file.reports}the host's event loop goes on while a script spins`],
  },
  {
    number: 2,
    from: "justjake/quickjs-emscripten#219: no interrupt in a native join",
    tests: ["an endless native join"],
  },
  {
    number: 4,
    from: "a native call in a loop starves the handler",
    tests: ["parsing in an endless loop"],
  },
  {
    number: 5,
    from: "quickjs-ng#810, #811, bellard/quickjs#341, #363: an interrupt becomes a rejection",
    tests: [
      "an interrupt is not catchable as a rejection",
      "an interrupt is not catchable by try",
      "a finally that goes on for ever",
    ],
  },
  {
    number: 7,
    from: "rquickjs#663: endless microtasks",
    tests: ["endless microtasks", "endless microtasks beside a host call"],
  },
  {
    number: 8,
    from: "quickjs-ng#1399, bellard/quickjs#490: backtracking",
    tests: ["a regular expression that backtracks for ever", "backtracking in a replacement"],
  },
  {
    number: 10,
    from: "bellard/quickjs#545, #546: big integers that grow",
    tests: ["a big integer that grows", "a huge big integer", "a shift by a billion bits"],
  },
  { number: 11, from: "an endless comparator", tests: ["an endless comparator"] },
  { number: 13, from: "an endless serialisation hook", tests: ["an endless serialisation hook"] },
  {
    number: 14,
    from: "an endless generator",
    tests: ["an endless generator", "an endless asynchronous generator"],
  },
  { number: 16, from: "slow natives between checks", tests: ["slow natives between checks"] },
  {
    number: 17,
    from: "TanStack/ai#905, fastschema/qjs#27: the budget is ignored in a host call",
    tests: [
      "a host call that never answers",
      `${file.reports}a run that ends in a host call fires the call's signal and says that its outcome is unknown`,
    ],
  },
  {
    number: 19,
    from: "sebastianwessel/quickjs#90: abort must stop an asynchronous chain",
    tests: [
      "a chain of slow calls",
      `${file.reports}a chain of slow calls ends at its wall budget, not at the end of a call`,
    ],
  },
  {
    number: 20,
    from: "quickjs-ng#1297: a typed array resized while it is sorted",
    tests: ["a typed array resized while it is sorted"],
  },
  {
    number: 22,
    from: "quickjs-ng#1673: one call removes the handler",
    tests: ["an interrupt removed by a nested evaluation"],
  },
  {
    number: 23,
    from: "quickjs-emscripten#255, #271, ifc-lite#2166: texts escape the limit",
    tests: ["strings beyond the heap"],
  },
  { number: 25, from: "isolated-vm#137, #107: one huge fill", tests: ["one huge fill"] },
  {
    number: 26,
    from: "ropes whose size is not charged",
    tests: ["a rope that is too long to send", "a rope sent out fails cleanly"],
  },
  {
    number: 28,
    from: "quickjs-emscripten#269: many objects in a job",
    tests: ["many objects in a job are no limit"],
  },
  {
    number: 29,
    from: "a guest that swallows its lack of memory",
    tests: [
      "memory that is caught goes on under the same cap",
      `${file.reports}a script that catches its lack of memory has used no more than its cap, and the result shows how much`,
    ],
  },
  {
    number: 31,
    from: "bellard/quickjs#468 (CVE-2025-69654), #531, #532, quickjs.rb#116: a crash near a tiny limit",
    tests: [`${file.sweeps}heapBytes from 256 KiB to 64 MiB`],
  },
  {
    number: 32,
    from: "quickjs-ng#1469: use after free in a stack trace under a limit",
    tests: [
      "an error with a huge name while memory is short",
      "an error with a huge name where the heap hardly holds the engine",
    ],
  },
  {
    number: 34,
    from: "isolated-vm#293: a big host value kills the process",
    tests: [
      "a host value larger than the heap",
      "a host value within its own limit and larger than the heap",
    ],
  },
  {
    number: 35,
    from: "bruno#8219, runline#39: a slow leak",
    tests: [`${file.reports}two thousand runs on one pool do not grow this process`],
  },
  { number: 37, from: "deep JSON text", tests: ["deep JSON text"] },
  { number: 38, from: "a deep JSON value", tests: ["a deep value stringified", "a deep value returned"] },
  {
    number: 40,
    from: "bellard/quickjs#460, LadybirdBrowser/ladybird#10361: a parser nested too deep",
    tests: ["a parser nested too deep", "a source nested too deep"],
  },
  {
    number: 41,
    from: "a regular expression nested too deep",
    tests: ["a regular expression nested too deep"],
  },
  {
    number: 43,
    from: "ifc-lite#1905, #1918: a throwing getter on a host result",
    tests: ["a throwing getter in a host result is a catchable error"],
  },
  {
    number: 44,
    from: "quickjs-wasi#35, quickjs-ng#992, #1708: NUL and lone surrogates",
    tests: ["keeps lone surrogates and NUL through a host call"],
  },
  {
    number: 46,
    from: "functions and symbols out",
    tests: ["functions and symbols out name their path", "a symbol as a result names itself"],
  },
  {
    number: 47,
    from: "BigInt, Map, Set, Date and typed arrays out",
    tests: [
      "carries BigInt, Map, Date and bytes faithfully",
      "carries Set, RegExp, undefined, NaN, infinities and minus zero faithfully",
    ],
  },
  {
    number: 49,
    from: "UTCP code-mode#33, tradingview-mcp#476: an asynchronous result arrives as {}",
    tests: ["a host call is a promise before it settles"],
  },
  {
    number: 50,
    from: "ifc-lite#2077, #2078: a rejected entry promise returned as data",
    tests: ["a returned rejected promise is the script's error"],
  },
  { number: 52, from: "an evil thenable", tests: ["a thenable that never returns"] },
  {
    number: 53,
    from: "evil error objects",
    tests: [
      "a getter on an error that never returns",
      "an error whose message and text never end",
      "a text of an error that never ends",
      "a message of an error that never ends",
    ],
  },
  {
    number: 55,
    from: "n8n#37448, temporal#1519, workerd#1186: a guest that pollutes a pooled context",
    tests: [`${file.survival}what one run did to its globals, the next does not see`],
  },
  {
    number: 56,
    from: "codemode 0.5.6: inherited names on namespaces",
    tests: ["inherited names are not host functions"],
  },
  { number: 58, from: "cloudflare/agents#1521: bytes are lost", tests: ["bytes survive a host call"] },
  { number: 59, from: "cloudflare/agents#1181: later arguments dropped", tests: ["every argument arrives"] },
  { number: 61, from: "dunder keys in arguments", tests: ["dunder keys stay own properties"] },
  {
    number: 62,
    from: "one huge text out",
    tests: ["a huge string out", "a huge error message is cut"],
  },
  {
    number: 64,
    from: "race and any",
    tests: ["Promise.race takes the faster host call", "Promise.any takes the first success"],
  },
  { number: 65, from: "fire and forget", tests: ["a call that is never awaited is a warning"] },
  {
    number: 67,
    from: "a thousand sequential calls",
    tests: ["a thousand sequential calls", "one call beyond the limit is named"],
  },
  {
    number: 68,
    from: "quickjs-emscripten#118, #51, #258, #261: the host settles after the end",
    tests: [
      "a run that ends while calls are open crashes nothing",
      "an answer that comes after the end",
      `${file.reports}a host that settles after the end makes no unhandled rejection`,
    ],
  },
  {
    number: 70,
    from: "quickjs-ng#39, #1038, bellard/quickjs#395: a lost rejection",
    tests: ["a lost rejection is a warning"],
  },
  { number: 71, from: "a late handler is one", tests: ["a rejection handled late is none"] },
  {
    number: 73,
    from: "bashkit#1868, vm2's advisories: host stacks leak",
    tests: [
      "a host error carries name of its code and no host frames",
      "an error from a called function points at the caller's line",
    ],
  },
  {
    number: 74,
    from: "quickjs-wasi#34: an unknown host function returns undefined",
    tests: ["an unknown host function is an error that names it"],
  },
  {
    number: 76,
    from: "restate#656: stack text makes a replay differ",
    tests: [`${file.approvals}a stack that is passed on does not make the replay differ`],
  },
  {
    number: 77,
    from: "inngest#1295, restate#197: a journalled call overtaken",
    tests: [`${file.approvals}calls that overtake each other keep their order when the script is replayed`],
  },
  {
    number: 79,
    from: "executor#1347, #1300, #1778: resume after a restart",
    tests: [`${file.approvals}goes on with what a killed one has left, and carries out nothing twice`],
  },
  {
    number: 80,
    from: "cloudflare-os#444, diri#108: an ambiguous timeout",
    tests: [
      `${file.reports}a run that ends in a host call fires the call's signal and says that its outcome is unknown`,
    ],
  },
  {
    number: 82,
    from: "delight-nashorn#20, javy#462, bellard/quickjs#352: wrong lines",
    tests: ["errors point at the right line"],
  },
  { number: 83, from: "wrong lines with types", tests: ["errors point at the right line of TypeScript"] },
  {
    number: 85,
    from: "cloudflare/agents#1092: types stripped by patterns corrupt code",
    tests: ["type words in values are left alone"],
  },
  {
    number: 86,
    from: "openclaw#95906: an error's text is lost",
    tests: ["a missing name keeps its message"],
  },
  {
    number: 88,
    from: "thrown values that are no errors",
    tests: [
      "a thrown object is described",
      "a thrown null is described",
      "a thrown string is described",
      "an error without a message is a failure",
    ],
  },
  { number: 89, from: "openclaw#113069: shell text as code", tests: ["a shell command is not a script"] },
  {
    number: 91,
    from: "kody#88: a race with a timer leaves a rejection",
    tests: ["a race with a timer leaves nothing behind"],
  },
  {
    number: 92,
    from: "bellard/quickjs#344, xahaud#474: Intl and time zones",
    tests: ["Intl is absent and a foreign locale is refused, never silently wrong"],
  },
  { number: 94, from: "web basics", tests: ["the web basics are right"] },
  {
    number: 95,
    from: "escape by constructors",
    tests: ["constructors reach no further than the guest's realm"],
  },
  {
    number: 97,
    from: "escape by imports",
    tests: [
      "imports of other files are refused",
      "imports by URL are refused",
      "imports of file URLs are refused",
      "a dynamic import of a computed name finds nothing",
    ],
  },
  {
    number: 98,
    from: "stella#1704: logs lost on failure",
    tests: [
      "what was logged before a failure is kept",
      `${file.reports}logs with their levels come with every way to fail`,
    ],
  },
  {
    number: 100,
    from: "ifc-lite#2110, #2170: logs shared by overlapping runs",
    tests: [`${file.reports}two runs at once keep their own logs and values`],
  },
  {
    number: 101,
    from: "openclaw#83389, windmill#9860: causes collapsed into one code",
    tests: [`${file.reports}each cause has a code of its own`],
  },
  {
    number: 103,
    from: "failproofai#758: the wait is not in the deadline, and a cancelled waiter still runs",
    tests: [
      `${file.reports}a run that waited too long is overloaded and never starts`,
      `${file.reports}a run that was cancelled while it waited never starts`,
    ],
  },
  {
    number: 104,
    from: "logto#9339: one text, two tenants, one heap",
    tests: [`${file.reports}two owners of the same text share no process and no state`],
  },
  {
    number: 106,
    from: "polkadot-sdk#7334: the filter is on one thread only",
    tests: [`${file.reports}every thread of a worker is filtered and can gain no privilege`],
  },
  {
    number: 107,
    from: "a cold start charged to the script",
    tests: [`${file.reports}a cold start is not charged to the script`],
  },
];

/** The numbers of the collection. The gaps are cases that were merged into others. */
export const reportNumbers: readonly number[] = [
  1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35, 37, 38, 40, 41,
  43, 44, 46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 64, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79, 80, 82,
  83, 85, 86, 88, 89, 91, 92, 94, 95, 97, 98, 100, 101, 103, 104, 106, 107,
];
