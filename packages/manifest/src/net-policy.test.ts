/** Network rules against examples and against a slow model that shares no code with the evaluator. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { NetRule } from "./grant-types.js";
import { formatHostPattern, hostMatches, parseHost, parseHostPattern } from "./host-pattern.js";
import { evaluateNet } from "./net-policy.js";

describe("hosts", () => {
  test.each([
    ["Example.COM", "example.com"],
    ["example.com.", "example.com"],
    ["_dmarc.example.com", "_dmarc.example.com"],
    ["xn--bcher-kva.example", "xn--bcher-kva.example"],
    ["localhost", "localhost"],
    ["192.168.0.1", "192.168.0.1"],
    ["192.168.0.1.", "192.168.0.1"],
    ["[2001:DB8:0:0:0:0:0:1]", "2001:db8::1"],
    ["2001:db8::1", "2001:db8::1"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"],
    ["::", "::"],
    ["::ffff:10.0.0.1", "10.0.0.1"],
    ["[::ffff:a00:1]", "10.0.0.1"],
    ["64:ff9b::1.2.3.4", "64:ff9b::102:304"],
  ])("%s is %s", (text, canonical) => {
    expect(parseHost(text)?.text).toBe(canonical);
  });

  test.each([
    "",
    ".",
    "..",
    "a..b",
    ".a",
    "a:80",
    "a/b",
    "a?b",
    "a#b",
    "u@a",
    "http://a",
    "a b",
    "a\0",
    "-a",
    "a-",
    "*",
    "*.a",
    "bücher.example",
    "\u212aelvin.example",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "127.0.0.01",
    "1.2.3.4.5",
    "256.1.1.1",
    "a.0x",
    "[::1",
    "::1]",
    "[1.2.3.4]",
    "fe80::1%eth0",
    "1::2::3",
    ":::",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7::8",
    "1:2:3:4:5:6:7:8:9",
    "1.2.3.4::",
    "::1.2.3",
    "12345::",
    `${"a".repeat(64)}.example`,
    `${"a.".repeat(127)}aa`,
  ])("refuses %j", (text) => {
    expect(parseHost(text)).toBeUndefined();
  });

  test("the longest name is a host, with and without its dot", () => {
    const name = `${"a.".repeat(126)}a`;
    expect(name).toHaveLength(253);
    expect(parseHost(name)?.text).toBe(name);
    expect(parseHost(`${name}.`)?.text).toBe(name);
  });

  test("every IPv6 address has the form that the platform's URL parser gives it", () => {
    const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }));
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), fc.boolean(), (groups, padded) => {
        const text = groups.map((n) => (padded ? n.toString(16).padStart(4, "0") : n.toString(16))).join(":");
        const canonical = parseHost(text);
        expect(canonical?.kind).toBe("ip");
        if (canonical?.text.includes(":")) {
          expect(`[${canonical.text}]`).toBe(new URL(`http://[${text}]/`).hostname);
        } else {
          expect(new URL(`http://[::ffff:${canonical?.text}]/`).hostname).toBe(
            new URL(`http://[${text}]/`).hostname,
          );
        }
        expect(parseHost(canonical?.text ?? "")).toEqual(canonical);
      }),
    );
  });

  test("text that the URL parser reads as another host is no host", () => {
    // Whatever we accept, the URL parser must agree on: otherwise a rule decides about one host and another is asked.
    const character = fc.constantFrom(..."abx019.:-_%[]*/@ \\ÄK".split(""));
    fc.assert(
      fc.property(fc.string({ unit: character, maxLength: 12 }), (text) => {
        const host = parseHost(text);
        if (host === undefined) return;
        const inUrl = text.includes(":") && !text.startsWith("[") ? `[${text}]` : text;
        const seen = new URL(`http://${inUrl}/`).hostname;
        expect(parseHost(seen)).toEqual(host);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("patterns", () => {
  test.each([
    ["*", "anything.example", true],
    ["*", "10.0.0.1", true],
    ["*", "[::1]", true],
    ["*", "not a host", false],
    ["api.example.com", "API.Example.Com", true],
    ["api.example.com", "api.example.com.", true],
    ["api.example.com.", "api.example.com", true],
    ["api.example.com", "xapi.example.com", false],
    ["api.example.com", "api.example.com.evil.example", false],
    ["*.example.com", "a.example.com", true],
    ["*.example.com", "example.com", false],
    ["*.example.com", "a.b.example.com", false],
    ["*.example.com", "aexample.com", false],
    ["**.example.com", "example.com", true],
    ["**.example.com", "a.example.com", true],
    ["**.example.com", "a.b.example.com", true],
    ["**.example.com", "notexample.com", false],
    ["10.0.0.1", "10.0.0.1", true],
    ["10.0.0.1", "[::ffff:10.0.0.1]", true],
    ["[2001:db8::1]", "2001:DB8:0::1", true],
    ["2001:db8::1", "[2001:db8::1]", true],
    ["2001:db8::1", "2001:db8::2", false],
  ])("%s on %s: %s", (pattern, host, matches) => {
    expect(hostMatches(pattern, host)).toBe(matches);
  });

  test.each(["", "**", "*.", "*.*.a", "a.*", "*a.example", "*.10.0.0.1", "**.::1", "https://a", "a:1", "*."])(
    "%j is no pattern, and using it throws instead of matching nothing",
    (pattern) => {
      expect(parseHostPattern(pattern)).toBeUndefined();
      expect(() => hostMatches(pattern, "a.example")).toThrow(RangeError);
    },
  );

  test("the canonical form of a pattern is a pattern that matches the same", () => {
    const parsed = parseHostPattern("**.Example.COM.");
    expect(parsed === undefined ? undefined : formatHostPattern(parsed)).toBe("**.example.com");
  });
});

describe("rules", () => {
  const get = { host: "api.example.com", port: 443, method: "GET" };

  test("without rules everything is denied, and the text names what to add", () => {
    expect(evaluateNet([], { ...get, method: "POST" })).toEqual({
      allowed: false,
      rule: null,
      reason:
        'POST api.example.com:443 is not granted: add {"host":"api.example.com","methods":["POST"]} to grants.net of the manifest',
    });
  });

  test("the first rule that matches decides", () => {
    const allow: NetRule = { host: "**.example.com" };
    const deny: NetRule = { host: "api.example.com", action: "deny" };
    expect(evaluateNet([allow, deny], get)).toEqual({ allowed: true, rule: allow });
    expect(evaluateNet([deny, allow], get)).toMatchObject({ allowed: false, rule: deny });
    expect(evaluateNet([deny, allow], { ...get, host: "b.example.com" })).toEqual({
      allowed: true,
      rule: allow,
    });
  });

  test("an allowing rule without methods is for GET and HEAD", () => {
    const rules: NetRule[] = [{ host: "api.example.com" }];
    expect(evaluateNet(rules, get).allowed).toBe(true);
    expect(evaluateNet(rules, { ...get, method: "HEAD" }).allowed).toBe(true);
    const post = evaluateNet(rules, { ...get, method: "POST" });
    expect(post).toMatchObject({ allowed: false, rule: null });
    expect(post.allowed ? "" : post.reason).toContain("grants.net[0] is for GET, HEAD on any port");
  });

  test("a denying rule without methods closes every method", () => {
    const rules: NetRule[] = [
      { host: "api.example.com", action: "deny" },
      { host: "*", methods: ["GET", "POST"] },
    ];
    for (const method of ["GET", "POST", "post"])
      expect(evaluateNet(rules, { ...get, method }).allowed).toBe(false);
    expect(evaluateNet(rules, { ...get, host: "b.example.com", method: "POST" }).allowed).toBe(true);
  });

  test("a rule of other methods does not match, and the next one decides", () => {
    const rules: NetRule[] = [
      { host: "*", methods: ["POST"], action: "deny", reason: "read only, please" },
      { host: "api.example.com", methods: ["GET", "POST", "PUT"] },
    ];
    expect(evaluateNet(rules, get).allowed).toBe(true);
    expect(evaluateNet(rules, { ...get, method: "PUT" }).allowed).toBe(true);
    expect(evaluateNet(rules, { ...get, method: "POST" })).toMatchObject({ reason: "read only, please" });
  });

  test("a rule with a port is for that port, one without is for any", () => {
    const rules: NetRule[] = [{ host: "api.example.com", port: 8443 }];
    expect(evaluateNet(rules, get).allowed).toBe(false);
    expect(evaluateNet(rules, { ...get, port: 8443 }).allowed).toBe(true);
    expect(evaluateNet([{ host: "api.example.com" }], { ...get, port: 1 }).allowed).toBe(true);
  });

  test.each([0, -1, 65_536, 1.5, Number.NaN])("port %s is denied whatever is granted", (port) => {
    expect(evaluateNet([{ host: "*" }], { ...get, port })).toMatchObject({ allowed: false, rule: null });
  });

  test("a host that is none is denied whatever is granted, in short and printable text", () => {
    const decision = evaluateNet([{ host: "*" }], { ...get, host: `\u202e"\n${"x".repeat(10_000)}` });
    expect(decision).toMatchObject({ allowed: false, rule: null });
    const reason = decision.allowed ? "" : decision.reason;
    expect(reason.length).toBeLessThan(250);
    expect(reason).toMatch(/^[\x20-\x7e]+$/);
  });

  test("a method of the script's making is shown short and printable", () => {
    const decision = evaluateNet([], { ...get, method: `\u0000${"A".repeat(5000)}` });
    expect(decision.allowed ? "" : decision.reason).toMatch(/^[\x20-\x7e]{1,250}$/);
  });

  test("decides as a slow model does", () => {
    const label = fc.constantFrom("a", "b", "A");
    const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join("."));
    const address = fc.constantFrom("1.2.3.4", "1.2.3.5", "::1", "0:0::1", "::2");
    const host = fc.oneof(
      name,
      name.map((text) => `${text}.`),
      address,
    );
    const pattern = fc.oneof(
      fc.constant("*"),
      name,
      name.map((text) => `*.${text}`),
      name.map((text) => `**.${text}`),
      address,
    );
    const method = fc.constantFrom("GET", "HEAD", "POST", "PUT");
    const port = fc.constantFrom(80, 443);
    const rule: fc.Arbitrary<NetRule> = fc.record(
      {
        host: pattern,
        port,
        methods: fc.array(method, { minLength: 1, maxLength: 3 }),
        action: fc.constantFrom("allow" as const, "deny" as const),
      },
      { requiredKeys: ["host"] },
    );
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 6 }), host, port, method, (rules, at, portOf, methodOf) => {
        const decision = evaluateNet(rules, { host: at, port: portOf, method: methodOf });
        const expected = modelDecision(rules, at, portOf, methodOf);
        expect({ allowed: decision.allowed, rule: decision.rule }).toEqual(expected);
      }),
      { numRuns: 5000 },
    );
  });
});

/** Filters the rules that match and looks at the first; matches by regular expressions over the URL parser's spelling. */
function modelDecision(
  rules: readonly NetRule[],
  host: string,
  port: number,
  method: string,
): { allowed: boolean; rule: NetRule | null } {
  const spelled = (text: string): string =>
    new URL(`http://${text.includes(":") ? `[${text}]` : text}/`).hostname.replace(/\.$/, "");
  const matching = rules.filter((rule) => {
    let source = ".*";
    const [, stars = "", rest = ""] = /^(\**)\.?(.*)$/.exec(rule.host) ?? [];
    if (rest !== "") {
      const tail = spelled(rest).replace(/[.[\]]/g, "\\$&");
      const before = stars === "**" ? "(?:[a-z0-9]+\\.)*" : stars === "*" ? "[a-z0-9]+\\." : "";
      source = before + tail;
    }
    const methods = rule.methods ?? (rule.action === "deny" ? [method] : ["GET", "HEAD"]);
    const hostFits = new RegExp(`^${source}$`).test(spelled(host));
    return hostFits && methods.includes(method) && (rule.port ?? port) === port;
  });
  const [first] = matching;
  return { allowed: first !== undefined && first.action !== "deny", rule: first ?? null };
}
