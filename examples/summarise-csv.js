// Summarises a file of two megabytes: counts, groups and extremes of a table, in one pass.
//
//   flowcell run examples/summarise-csv.js --input @examples/data/UnicodeData.txt
//
// The input is the text of the file (semicolon-separated, one character of Unicode a line; see data/LICENSE-UNICODE.txt).
// Reading line by line keeps the memory of the script near the size of the file.

const columns = { code: 0, name: 1, category: 2 };

/** Calls `visit` with the fields of each line. */
function eachRow(text, visit) {
  for (let start = 0; start < text.length; ) {
    let end = text.indexOf("\n", start);
    if (end === -1) end = text.length;
    if (end > start) visit(text.slice(start, end).split(";", 3));
    start = end + 1;
  }
}

export default async function (input) {
  if (typeof input !== "string")
    throw new TypeError("give the table with --input @examples/data/UnicodeData.txt");
  const perCategory = new Map();
  let rows = 0;
  let longest = "";
  let arrows = 0;
  eachRow(input, (fields) => {
    const name = fields[columns.name];
    const category = fields[columns.category];
    rows++;
    perCategory.set(category, (perCategory.get(category) ?? 0) + 1);
    if (name.length > longest.length) longest = name;
    if (name.includes("ARROW")) arrows++;
  });
  const largest = [...perCategory].sort((a, b) => b[1] - a[1]).slice(0, 5);
  console.log(`read ${rows} rows of ${perCategory.size} categories`);
  return {
    rows,
    categories: perCategory.size,
    largest: Object.fromEntries(largest),
    longestName: longest,
    arrows,
  };
}
