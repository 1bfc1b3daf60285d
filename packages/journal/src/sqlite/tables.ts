/** The tables of the schema in words, for docs/JOURNAL.md; a test holds the list to the schema. */

/** `change` goes on from "it can". */
export const tableRows: readonly { readonly table: string; readonly row: string; readonly change: string }[] =
  [
    { table: "meta", row: "the schema version or the journal format", change: "change by migration" },
    {
      table: "runs",
      row: "how a run goes on: owner, generation, state, result",
      change: "change until it is finished",
    },
    { table: "run_starts", row: "what a run started with", change: "only go with its run" },
    {
      table: "run_keys",
      row: "a deduplication key of a flow, and the run it names",
      change: "never change or go",
    },
    {
      table: "calls",
      row: "a host call: arguments, effect, key, attempts, what it waits for",
      change: "be begun, given up or marked until it has an outcome; go with its run",
    },
    {
      table: "deliveries",
      row: "one thing the script was given, in order: the outcome of a call, or a timer",
      change: "only go with its run",
    },
    { table: "log_lines", row: "a line that the script logged", change: "only go with its run" },
    { table: "signals", row: "a signal sent to a run", change: "be taken once; go with its run" },
    {
      table: "quarantine",
      row: "a completion that came late or twice, or fits no call",
      change: "only go with its run",
    },
    { table: "flows", row: "a flow: enabled or not, next time of its schedule", change: "change" },
    {
      table: "versions",
      row: "an installed version: manifest, bundle, sources, decision",
      change: "be decided about; its content never changes, it never goes",
    },
    { table: "events", row: "an event that was handed out", change: "never change or go" },
    { table: "audit", row: "who did what", change: "never change or go" },
    { table: "kv", row: "a key of a flow and its value", change: "change by local operations" },
    { table: "kv_totals", row: "the bytes of a flow's keys and values", change: "follow `kv` by triggers" },
    {
      table: "bodies",
      row: "an attachment of 4 KiB or more, by its SHA-256",
      change: "never change; go with the last use",
    },
    { table: "body_uses", row: "the run or key that needs a body", change: "come and go with what needs it" },
  ];
