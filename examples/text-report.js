// A text report from records: sorted, aligned, with totals. The result is a text and is printed as it is.
//
//   flowcell run examples/text-report.js
//   flowcell run examples/text-report.js --input '[{"team":"Core","open":3,"closed":14}]'

const exampleTeams = [
  { team: "Payments", open: 12, closed: 48 },
  { team: "Search", open: 3, closed: 31 },
  { team: "Mobile", open: 25, closed: 20 },
];

function table(header, rows) {
  const widths = header.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column].length)),
  );
  const line = (cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join("  ");
  return [line(header), widths.map((width) => "-".repeat(width)).join("  "), ...rows.map(line)].join("\n");
}

const percent = (part, all) => (all === 0 ? "-" : `${Math.round((100 * part) / all)} %`);

export default async function (teams = exampleTeams) {
  const sorted = [...teams].sort((a, b) => b.open - a.open || (a.team < b.team ? -1 : 1));
  const open = sorted.reduce((sum, team) => sum + team.open, 0);
  const closed = sorted.reduce((sum, team) => sum + team.closed, 0);
  const rows = [...sorted, { team: "All", open, closed }].map((team) => [
    team.team,
    String(team.open),
    String(team.closed),
    percent(team.closed, team.open + team.closed),
  ]);
  return `Tickets by team\n\n${table(["Team", "Open", "Closed", "Done"], rows)}\n`;
}
