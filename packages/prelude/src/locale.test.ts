/** The locale methods: right for en-US and UTC, as Node's Intl is; anything else is refused by name, never silently wrong. */
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { Guest } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

/** Values of many expressions at once; what one throws, as `name: message`. */
async function values(expressions: readonly string[], input?: unknown): Promise<unknown[]> {
  const list = expressions.map((expression) => `() => (${expression})`).join(",");
  const run = await guest.run(
    `return [${list}].map(f => { try { return f() } catch (e) { return e.name + ': ' + e.message } })`,
    { input },
  );
  expect(run.status, run.error?.message).toBe("completed");
  return run.value as unknown[];
}

async function value(expression: string): Promise<unknown> {
  return (await values([expression]))[0];
}

describe("numbers", () => {
  const options = [
    undefined,
    {},
    { maximumFractionDigits: 0 },
    { minimumFractionDigits: 2 },
    { minimumFractionDigits: 2, maximumFractionDigits: 2 },
    { maximumFractionDigits: 6 },
    { useGrouping: false },
    { minimumIntegerDigits: 4 },
    { style: "percent" },
    { style: "percent", minimumFractionDigits: 1 },
    { style: "currency", currency: "USD" },
    { style: "currency", currency: "jpy" },
    { style: "currency", currency: "CHF" },
    { style: "currency", currency: "EUR", maximumFractionDigits: 0 },
    { style: "currency", currency: "USD", minimumFractionDigits: 0 },
    { style: "currency", currency: "GBP", currencyDisplay: "code" },
  ] as const;
  const special = [
    0,
    -0,
    1,
    -1,
    0.5,
    1.005,
    2.5,
    -2.5,
    999.995,
    1234.5,
    1e21,
    1.5e-7,
    123456789.987654,
    Number.NaN,
    Infinity,
    -Infinity,
    0.1 + 0.2,
    5e-324,
    1.7976931348623157e308,
    0.9999,
    99.5,
    1e6,
  ];

  test("are written as Node writes them", async () => {
    const got = await values(
      ["input[0].map(o => input[1].map(n => n.toLocaleString('en-US', o ?? undefined)))"],
      [options.map((one) => one ?? null), special],
    );
    expect(got[0]).toEqual(
      options.map((one) => special.map((number) => number.toLocaleString("en-US", one))),
    );
  });

  test("any number is written as Node writes it", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.double(), { minLength: 20, maxLength: 20 }),
        fc.constantFrom(...options),
        async (numbers, option) => {
          const got = await values(
            ["input[1].map(n => n.toLocaleString(undefined, input[0] ?? undefined))"],
            [option ?? null, numbers],
          );
          expect(got[0]).toEqual(numbers.map((number) => number.toLocaleString("en-US", option)));
        },
      ),
      { numRuns: 40 },
    );
  });

  test("bigints and lists follow", async () => {
    expect(
      await values([
        "(123456789012345678901234567890n).toLocaleString()",
        "(-5n).toLocaleString('en-US', {style: 'percent'})",
        "[1234.5, null, undefined, new Date(0), 'x'].toLocaleString('en-US')",
        "new Float64Array([1234.5, 2]).toLocaleString()",
      ]),
    ).toEqual([
      "123,456,789,012,345,678,901,234,567,890",
      "-500%",
      "1,234.5,,,1/1/1970, 12:00:00 AM,x",
      "1,234.5,2",
    ]);
  });

  test.each([
    [
      "(1234.5).toLocaleString('de-DE')",
      'RangeError: toLocaleString: the locale "de-DE" is not available here, only en-US is; build the text yourself',
    ],
    ["(1).toLocaleString(['fr', 'en-US'])", /^RangeError: toLocaleString: the locale "fr"/],
    ["[1234.5].toLocaleString('de-DE')", /^RangeError: toLocaleString: the locale "de-DE"/],
    [
      "(1).toLocaleString('en-US', {notation: 'compact'})",
      "RangeError: toLocaleString: the option notation is not available here; build the text yourself",
    ],
    ["(1).toLocaleString('en-US', {maximumSignificantDigits: 3})", /^RangeError/],
    ["(1).toLocaleString('en-US', {style: 'unit', unit: 'liter'})", /^RangeError/],
    ["(1).toLocaleString('en-US', {style: 'currency'})", /^TypeError/],
    [
      "(1).toLocaleString('en-US', {style: 'currency', currency: 'XYZ'})",
      /^RangeError: toLocaleString: the option currency "XYZ"/,
    ],
    ["(1).toLocaleString('en-US', {maximumFractionDigits: 101})", /^RangeError/],
    ["(1).toLocaleString('en-US', {minimumFractionDigits: 3, maximumFractionDigits: 1})", /^RangeError/],
  ])("%s is refused", async (expression, message) => {
    expect(await value(expression)).toMatch(message);
  });
});

describe("dates", () => {
  // 2024-03-05T13:04:09.007Z, a Tuesday; the texts are those of Node 20 with ICU 78.
  const cases: readonly (readonly [method: string, options: string, text: string])[] = [
    ["toLocaleString", "", "3/5/2024, 1:04:09 PM"],
    ["toLocaleDateString", "", "3/5/2024"],
    ["toLocaleTimeString", "", "1:04:09 PM"],
    ["toLocaleString", "{timeZone: 'UTC'}", "3/5/2024, 1:04:09 PM"],
    [
      "toLocaleString",
      "{dateStyle: 'full', timeStyle: 'full'}",
      "Tuesday, March 5, 2024 at 1:04:09 PM Coordinated Universal Time",
    ],
    ["toLocaleString", "{dateStyle: 'long', timeStyle: 'long'}", "March 5, 2024 at 1:04:09 PM UTC"],
    ["toLocaleString", "{dateStyle: 'medium', timeStyle: 'medium'}", "Mar 5, 2024, 1:04:09 PM"],
    ["toLocaleString", "{dateStyle: 'short', timeStyle: 'short'}", "3/5/24, 1:04 PM"],
    ["toLocaleDateString", "{dateStyle: 'full'}", "Tuesday, March 5, 2024"],
    ["toLocaleTimeString", "{timeStyle: 'short'}", "1:04 PM"],
    [
      "toLocaleDateString",
      "{weekday: 'long', year: 'numeric', month: 'long', day: 'numeric'}",
      "Tuesday, March 5, 2024",
    ],
    [
      "toLocaleDateString",
      "{weekday: 'short', year: 'numeric', month: 'short', day: 'numeric'}",
      "Tue, Mar 5, 2024",
    ],
    ["toLocaleDateString", "{year: 'numeric', month: 'long'}", "March 2024"],
    ["toLocaleDateString", "{month: 'long', day: 'numeric'}", "March 5"],
    ["toLocaleDateString", "{month: 'short'}", "Mar"],
    ["toLocaleDateString", "{year: 'numeric', month: '2-digit', day: '2-digit'}", "03/05/2024"],
    [
      "toLocaleDateString",
      "{weekday: 'short', year: 'numeric', month: 'numeric', day: 'numeric'}",
      "Tue, 3/5/2024",
    ],
    ["toLocaleDateString", "{year: '2-digit', month: 'numeric', day: 'numeric'}", "3/5/24"],
    ["toLocaleDateString", "{year: 'numeric', month: '2-digit'}", "03/2024"],
    ["toLocaleDateString", "{weekday: 'long'}", "Tuesday"],
    ["toLocaleDateString", "{year: 'numeric'}", "2024"],
    [
      "toLocaleString",
      "{month: 'short', day: 'numeric', hour: 'numeric', minute: '2-digit'}",
      "Mar 5, 1:04 PM",
    ],
    [
      "toLocaleString",
      "{year: 'numeric', month: 'long', day: 'numeric', hour: '2-digit', minute: '2-digit'}",
      "March 5, 2024 at 01:04 PM",
    ],
    ["toLocaleTimeString", "{hour: 'numeric'}", "1 PM"],
    ["toLocaleTimeString", "{hour: '2-digit', minute: '2-digit', hour12: false}", "13:04"],
    [
      "toLocaleTimeString",
      "{hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'}",
      "13:04:09",
    ],
    ["toLocaleTimeString", "{hour: 'numeric', minute: 'numeric', timeZoneName: 'short'}", "1:04 PM UTC"],
    ["toLocaleTimeString", "{minute: 'numeric', second: 'numeric'}", "04:09"],
    ["toLocaleDateString", "{hour: 'numeric', minute: '2-digit'}", "3/5/2024, 1:04 PM"],
  ];

  test("are written as Node writes them", async () => {
    const got = await values(
      cases.map(
        ([method, options]) =>
          `new Date(Date.UTC(2024, 2, 5, 13, 4, 9, 7)).${method}('en-US'${options === "" ? "" : `, ${options}`})`,
      ),
    );
    expect(got).toEqual(cases.map(([, , text]) => text));
  });

  test("midnight, noon and what is no date", async () => {
    expect(
      await values([
        "new Date(0).toLocaleTimeString()",
        "new Date(432e5).toLocaleTimeString('en')",
        "new Date(0).toLocaleTimeString('en-US', {hour12: false})",
        "new Date(0).toLocaleTimeString('en-US', {hourCycle: 'h23', hour: '2-digit', minute: '2-digit'})",
        "new Date(NaN).toLocaleString()",
        "new Date(NaN).toLocaleDateString('en-US', {dateStyle: 'full'})",
      ]),
    ).toEqual(["12:00:00 AM", "12:00:00 PM", "24:00:00", "00:00", "Invalid Date", "Invalid Date"]);
  });

  test.each([
    [
      "new Date(0).toLocaleString('en-US', {timeZone: 'America/New_York'})",
      'RangeError: toLocaleString: the time zone "America/New_York" is not available here, only UTC is; add the offset yourself',
    ],
    ["new Date(0).toLocaleDateString('en-GB')", /^RangeError: toLocaleDateString: the locale "en-GB"/],
    ["new Date(0).toLocaleDateString('en-US', {timeStyle: 'short'})", /^TypeError/],
    ["new Date(0).toLocaleTimeString('en-US', {dateStyle: 'short'})", /^TypeError/],
    ["new Date(0).toLocaleString('en-US', {dateStyle: 'short', year: 'numeric'})", /^TypeError/],
    [
      "new Date(0).toLocaleString('en-US', {fractionalSecondDigits: 3})",
      /^RangeError: toLocaleString: the option fractionalSecondDigits/,
    ],
    ["new Date(0).toLocaleString('en-US', {era: 'short'})", /^RangeError/],
    [
      "new Date(0).toLocaleString('en-US', {month: 'narrow'})",
      /^RangeError: toLocaleString: the option month "narrow"/,
    ],
    ["new Date(0).toLocaleDateString('en-US', {year: 'numeric', day: 'numeric'})", /^RangeError/],
    ["new Date(0).toLocaleDateString('en-US', {weekday: 'long', month: 'long'})", /^RangeError/],
    ["new Date(-1e14).toLocaleString()", /^RangeError: toLocaleString: years before 1/],
  ])("%s is refused", async (expression, message) => {
    expect(await value(expression)).toMatch(message);
  });
});

describe("order", () => {
  const letters = "aAbBcCzZ019 _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$éÉèêëÀàâäãåÅñÑçÇüÜöøØßæÆœłđôõ";
  const texts = fc.array(fc.constantFrom(...letters), { maxLength: 6 }).map((list) => list.join(""));

  test("is that of Node's Intl for Latin text", async () => {
    const compare = new Intl.Collator("en-US").compare;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(texts, texts), { minLength: 50, maxLength: 50 }), async (pairs) => {
        const got = await values(["input.map(([a, b]) => Math.sign(a.localeCompare(b)))"], pairs);
        expect(got[0]).toEqual(pairs.map(([one, other]) => Math.sign(compare(one, other)) + 0));
      }),
      { numRuns: 30 },
    );
  });

  test.each([
    ["numeric", { numeric: true }],
    ["base", { sensitivity: "base" }],
    ["accent", { sensitivity: "accent" }],
    ["numeric and base", { numeric: true, sensitivity: "base" }],
  ] as const)("with %s, too", async (_name, options) => {
    const compare = new Intl.Collator("en-US", options).compare;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(texts, texts), { minLength: 50, maxLength: 50 }), async (pairs) => {
        const got = await values(
          ["input[0].map(([a, b]) => Math.sign(a.localeCompare(b, undefined, input[1])))"],
          [pairs, options],
        );
        expect(got[0]).toEqual(pairs.map(([one, other]) => Math.sign(compare(one, other)) + 0));
      }),
      { numRuns: 15 },
    );
  });

  test("sorts what people sort", async () => {
    expect(
      await values([
        "['banana', 'Apple', 'apple', 'éclair', 'Zebra', 'zoo', 'eclair'].sort((a, b) => a.localeCompare(b))",
        "['file10', 'file2', 'File1'].sort((a, b) => a.localeCompare(b, 'en', {numeric: true, sensitivity: 'base'}))",
        "['a'.localeCompare('a'), 'Привет'.localeCompare('Привет')]",
        "['TITLE'.toLocaleLowerCase(), 'straße'.toLocaleUpperCase('en-US')]",
      ]),
    ).toEqual([
      ["apple", "Apple", "banana", "eclair", "éclair", "Zebra", "zoo"],
      ["File1", "file2", "file10"],
      [0, 0],
      ["title", "STRASSE"],
    ]);
  });

  test.each([
    [
      "'Привет'.localeCompare('Пока')",
      /^RangeError: localeCompare: the text holds "П", whose place in the alphabet is not known here; compare with < and >$/,
    ],
    ["'a😀'.localeCompare('a')", /^RangeError/],
    ["'z'.localeCompare('ä', 'sv')", /^RangeError: localeCompare: the locale "sv"/],
    [
      "'a'.localeCompare('b', 'en', {caseFirst: 'upper'})",
      /^RangeError: localeCompare: the option caseFirst "upper"/,
    ],
    ["'a'.localeCompare('b', 'en', {ignorePunctuation: true})", /^RangeError/],
    ["'a'.localeCompare('b', 'en', {sensitivity: 'loud'})", /^RangeError/],
    ["'I'.toLocaleLowerCase('tr')", /^RangeError: toLocaleLowerCase: the locale "tr"/],
    ["String.prototype.localeCompare.call(null, 'a')", /^TypeError/],
  ])("%s is refused", async (expression, message) => {
    expect(await value(expression)).toMatch(message);
  });
});
