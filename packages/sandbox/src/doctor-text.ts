// Prints a doctor report for people: plain text in columns, the same without colours, readable at 100 columns.
// Called by the command line. Pure; everything it prints is in the report.
import type { ControlReport, DoctorReport } from "./doctor.js";
import type { ProbeVerdict } from "./escape-probes.js";

/** How much is printed. */
export interface DoctorTextOptions {
  /** Every fact, observation and probe, not only the sums. */
  readonly details?: boolean | undefined;
}

const LEVELS: readonly string[] = ["none", "unit-tested", "attested and seen", "shown live"];

/** What the level rests on: at level 2 the parent has seen it, or done it itself without being able to look. */
function evidenceText({ level, observed }: ControlReport): string {
  return level === 2 && observed.length === 0 ? "attested and set by the parent" : (LEVELS[level] ?? "");
}

/** The report as text, with a final line feed. */
export function renderDoctor(report: DoctorReport, options: DoctorTextOptions = {}): string {
  const details = options.details === true;
  const parts = [
    section("This host", table(report.host.map((row) => [row.name, row.value, row.meaning]))),
    section("Worker build", buildLines(report)),
    section("Plan", planLines(report)),
    section("Worker", workerLines(report, details)),
    section("Escape probes", probeLines(report, details)),
    section("Controls", controlLines(report, details)),
    section(
      "Not proven by this report",
      report.doesNotProve.map((line) => `- ${line}`),
    ),
    verdict(report),
  ];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : [title, ...lines.map((line) => `  ${line}`)].join("\n");
}

/** Columns as wide as their longest cell; the last one is left as it is. */
function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, index) => {
      widths[index] = Math.max(widths[index] ?? 0, cell.length);
    });
  }
  return rows.map((row) =>
    row
      .map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}

function buildLines(report: DoctorReport): readonly string[] {
  const digest =
    report.build.digestMatches === null
      ? []
      : [
          report.build.digestMatches
            ? "the binary is byte for byte what was built"
            : "THE BINARY IS NOT WHAT WAS BUILT",
        ];
  return [report.build.text, ...digest];
}

function planLines(report: DoctorReport): readonly string[] {
  const { plan } = report;
  if (plan === null) {
    return [
      `none: refused at the gate "${report.gate ?? ""}"`,
      ...report.blockers.flatMap((blocker) => [`- ${blocker.message}`, `  what to do: ${blocker.remedy}`]),
    ];
  }
  const landlock = plan.landlockAbi > 0 ? `ABI ${plan.landlockAbi}` : "none in this kernel";
  return table([
    ["backend", `${plan.backend} on ${plan.os} ${plan.arch}, kernel ${plan.kernelRelease}`],
    ["isolation", plan.isolation],
    ["landlock", `${plan.landlock === "required" ? "required" : "OPTIONAL BY THE OPERATOR"}, ${landlock}`],
    [
      "limits",
      `${plan.limits.dataBytes} bytes of data, ${plan.limits.cpuSeconds} s of CPU, ${plan.limits.stackBytes} bytes of stack`,
    ],
    ["requires", `${plan.required.length} controls`],
  ]);
}

function workerLines(report: DoctorReport, details: boolean): readonly string[] {
  const { worker } = report;
  if (worker === null) return [];
  if (worker.startFailure !== null) {
    return [`did not start: ${worker.startFailure.message}`, `what to do: ${worker.startFailure.remedy}`];
  }
  if (worker.facts.length === 0 && worker.refusal === null) return ["was not started"];
  const agree = worker.facts.filter((fact) => fact.agrees).length;
  const seen = worker.observation.filter((row) => row.state === "agrees").length;
  const against = worker.observation.filter(
    (row) => row.state === "contradicts" || row.state === "unreadable",
  );
  const skipped = worker.observation.filter((row) => row.state === "skipped");
  const ms = (value: number | null): string => (value === null ? "" : `${value.toFixed(1)} ms`);
  return [
    ...table([
      ["verdict", worker.accepted ? "accepted" : `REFUSED: ${worker.refusal?.message ?? ""}`],
      [
        "Welcome",
        `after ${ms(worker.welcomeMs)}; ${agree} of ${worker.facts.length} facts are as the plan demands`,
      ],
      [
        "seen",
        `in ${ms(worker.judgedMs)}; ${seen} agree, ${against.length} contradict, ${skipped.length} not visible to this process`,
      ],
      ["end", worker.end],
    ]),
    ...(worker.confinement?.layers ?? []).map((layer) => `layer ${layer.layer}: ${layer.detail}`),
    ...(worker.confinement?.notes ?? []).map((note) => `note: ${note}`),
    ...worker.facts
      .filter((fact) => details || !fact.agrees)
      .map(
        (fact) =>
          `${fact.agrees ? "fact" : "WRONG FACT"} ${fact.fact}: ${fact.claimed}${fact.agrees ? "" : `, demanded ${fact.demanded}`}`,
      ),
    ...worker.observation
      .filter((row) => details || row.state !== "agrees")
      .map((row) => {
        if (row.state === "agrees") return `seen ${row.name}: ${row.found}`;
        if (row.state === "contradicts")
          return `CONTRADICTION ${row.name}: ${row.found}, demanded ${row.expected}`;
        return `${row.state === "skipped" ? "not seen" : "UNREADABLE"} ${row.name}: ${row.note}`;
      }),
  ];
}

const VERDICTS: readonly (readonly [ProbeVerdict, string])[] = [
  ["refused", "succeed unconfined, refused confined"],
  ["refused_only", "refused confined, and failing unconfined as well: no proof"],
  ["allowed", "allowed, as listed: what a worker needs, or what nobody can deny"],
  ["unavailable", "not possible on this host"],
  ["inconclusive", "prove nothing: one of the two attempts is not as listed"],
  ["escaped", "NOT REFUSED"],
];

function probeLines(report: DoctorReport, details: boolean): readonly string[] {
  if (report.probes.length === 0 && report.live.length === 0) return ["not tried"];
  const counts = VERDICTS.map(([verdictName, text]) => ({
    text,
    count: report.probes.filter((probe) => probe.verdict === verdictName).length,
  })).filter((one) => one.count > 0);
  const shown = report.probes.filter(
    (probe) => details || probe.verdict === "escaped" || probe.verdict === "inconclusive",
  );
  return [
    `${report.probes.length} acts, each tried without and with confinement`,
    ...table(counts.map((one) => [String(one.count).padStart(4), one.text])),
    ...table(
      shown.map((probe) => [
        probe.name,
        probe.proves,
        probe.verdict,
        `${probe.unconfined.outcome} → ${probe.worker.outcome}`,
      ]),
    ),
    ...report.live.map(
      (check) => `live ${check.name}: ${check.state}: worker ${check.worker}; unconfined ${check.unconfined}`,
    ),
  ];
}

function controlLines(report: DoctorReport, details: boolean): readonly string[] {
  if (report.plan === null) return ["none is held: there is no plan, so no worker starts"];
  const head = ["control", "needed", "state", "evidence", "by"];
  const rows = report.controls.map((one) => [
    one.control,
    one.required ? "yes" : "no",
    one.state,
    `${one.level} ${evidenceText(one)}`,
    one.layers.join(", "),
  ]);
  return [
    ...table([head, ...rows]),
    ...report.controls.filter((one) => one.missing !== "").map((one) => `${one.control}: ${one.missing}`),
    ...(details ? report.controls.flatMap(controlDetails) : []),
  ];
}

function controlDetails(one: ControlReport): readonly string[] {
  if (one.state === "absent") return [];
  return [
    `${one.control}: ${one.title}`,
    ...(one.attested.length === 0 ? [] : [`  attested by ${one.attested.join(", ")}`]),
    ...(one.observed.length === 0 ? [] : [`  seen by ${one.observed.join(", ")}`]),
    ...(one.setByParent === "" ? [] : [`  the parent ${one.setByParent}`]),
    ...(one.probes.length === 0 ? [] : [`  ${one.probes.length} escapes refused: ${one.probes.join(", ")}`]),
    `  does not prove ${one.doesNotProve}`,
  ];
}

function verdict(report: DoctorReport): string {
  const problems = report.problems.map((problem) => `- ${problem}`);
  const head = report.ok
    ? "No problem was found."
    : `${report.problems.length} problem${problems.length === 1 ? "" : "s"}:`;
  return [head, ...problems, report.tierText].join("\n");
}
