/** The web platform set, on cases taken over from the web platform tests' tables. */
import { beforeAll, describe, expect, test } from "vitest";
import { Guest, type RunOptions, sentValue } from "../testing/guest.js";

let guest: Guest;
beforeAll(async () => {
  guest = await Guest.create();
});

/** The value of an expression in the guest; what it throws, as `name: message`. */
async function value(expression: string, options: RunOptions = {}): Promise<unknown> {
  const run = await guest.run(
    `try { return await (async () => (${expression}))() } catch (e) { return e.name + ': ' + e.message }`,
    options,
  );
  expect(run.status, run.error?.message).toBe("completed");
  return run.value;
}

describe("URL", () => {
  test.each([
    ["http://example.com:80/a/../b?q#f", undefined, "http://example.com/b?q#f"],
    ["HTTP://EXAMPLE.com/%7Efoo/%zz", undefined, "http://example.com/%7Efoo/%zz"],
    ["http://0x7f.1/", undefined, "http://127.0.0.1/"],
    ["http://2130706433/", undefined, "http://127.0.0.1/"],
    ["http://[::ffff:1.2.3.4]/", undefined, "http://[::ffff:102:304]/"],
    ["http://[2001:DB8:0:0:0:0:0:1]/", undefined, "http://[2001:db8::1]/"],
    ["https://faß.de/", undefined, "https://xn--fa-hia.de/"],
    ["https://日本語。jp", undefined, "https://xn--wgv71a119e.jp/"],
    ["http://user:p%40ss@host:8080/x", undefined, "http://user:p%40ss@host:8080/x"],
    ["//other/p", "https://host/a", "https://other/p"],
    ["../x?y", "http://h/a/b/c", "http://h/a/x?y"],
    ["?q", "http://h/a/b#f", "http://h/a/b?q"],
    ["#f", "http://h/a?q", "http://h/a?q#f"],
    ["", "http://h/a?q#f", "http://h/a?q"],
    ["\\x\\y", "http://h/a", "http://h/x/y"],
    ["http://h/\t\na b", undefined, "http://h/a%20b"],
    ["http://h/é?é#é", undefined, "http://h/%C3%A9?%C3%A9#%C3%A9"],
    ["mailto:a@b", undefined, "mailto:a@b"],
    ["data:text/plain,x y", undefined, "data:text/plain,x y"],
    ["file:///C|/x", undefined, "file:///C:/x"],
    ["http://h:65535", undefined, "http://h:65535/"],
  ])("%j against %j is %s", async (input, base, href) => {
    expect(
      await value("new URL(input[0], input[1] ?? undefined).href", { input: [input, base ?? null] }),
    ).toBe(href);
  });

  test.each([
    "http://",
    "http://a b/",
    "http://h:65536",
    "relative",
    "http://[::1",
    "https://exa%23mple/",
    "http://1.2.3.256/",
  ])("%j is refused", async (input) => {
    expect(await value("new URL(input)", { input })).toMatch(/^TypeError/);
    expect(await value("[URL.canParse(input), URL.parse(input)]", { input })).toEqual([false, null]);
  });

  test("parts are read and set", async () => {
    expect(
      await value(`(() => { const u = new URL('https://u:p@h:8080/a/b?c=1&c=2#d'); const before = [u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin];
        u.port = 443; u.pathname = 'x y'; u.searchParams.append('e', 'é&'); u.hash = ''; u.host = 'other:1'; return [before, u.href, JSON.stringify({u})] })()`),
    ).toEqual([
      ["https:", "u", "p", "h:8080", "h", "8080", "/a/b", "?c=1&c=2", "#d", "https://h:8080"],
      "https://u:p@other:1/x%20y?c=1&c=2&e=%C3%A9%26",
      '{"u":"https://u:p@other:1/x%20y?c=1&c=2&e=%C3%A9%26"}',
    ]);
  });

  test("URLSearchParams follow the standard", async () => {
    expect(
      await value(`(() => { const p = new URLSearchParams('?a=1&b=%20+x&a=2&c'); p.append('d', 'ü'); p.set('b', '3'); p.sort();
        return [String(p), p.getAll('a'), p.get('nope'), p.has('a', '2'), p.has('a', '3'), p.size, [...p.keys()].join(), String(new URLSearchParams({x: 'y z', n: 1})), String(new URLSearchParams([['k', '~!*']])), (p.delete('a', '1'), String(p))] })()`),
    ).toEqual([
      "a=1&a=2&b=3&c=&d=%C3%BC",
      ["1", "2"],
      null,
      true,
      false,
      5,
      "a,a,b,c,d",
      "x=y+z&n=1",
      "k=%7E%21*",
      "a=2&b=3&c=&d=%C3%BC",
    ]);
  });
});

describe("encoding", () => {
  test.each([
    ["[...new TextEncoder().encode('é€😀')]", [195, 169, 226, 130, 172, 240, 159, 152, 128]],
    ["[...new TextEncoder().encode('\\ud800x')]", [239, 191, 189, 120]],
    ["new TextDecoder().decode(new Uint8Array([239, 187, 191, 97]))", "a"],
    ["new TextDecoder('utf-8', {ignoreBOM: true}).decode(new Uint8Array([239, 187, 191, 97]))", "\ufeffa"],
    ["new TextDecoder().decode(new Uint8Array([0xf0, 0x9f, 0x98, 0x41]))", "\ufffdA"],
    ["new TextDecoder().decode(new Uint8Array([0xed, 0xa0, 0x80]))", "\ufffd\ufffd\ufffd"],
    [
      "new TextDecoder('utf-8', {fatal: true}).decode(new Uint8Array([255]))",
      expect.stringMatching(/^TypeError/),
    ],
    [
      "(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), {stream: true}) + d.decode(new Uint8Array([0xac])) })()",
      "€",
    ],
    ["new TextDecoder('utf-16le').decode(new Uint8Array([0x61, 0, 0x3d, 0xd8, 0, 0xde]))", "a😀"],
    ["new TextDecoder('latin1').encoding", "windows-1252"],
    ["new TextDecoder('UTF8').encoding", "utf-8"],
    ["new TextDecoder('nonsense')", expect.stringMatching(/^RangeError/)],
    [
      "(() => { const b = new Uint8Array(4); return [new TextEncoder().encodeInto('é€', b), [...b]] })()",
      [{ read: 1, written: 2 }, [195, 169, 0, 0]],
    ],
  ])("%s", async (expression, expected) => {
    expect(await value(expression)).toEqual(expected);
  });
});

describe("base64 and hexadecimal", () => {
  test.each([
    ["btoa('')", ""],
    ["btoa('a')", "YQ=="],
    ["btoa('\\u00ff\\u0000')", "/wA="],
    ["btoa('€')", expect.stringMatching(/^InvalidCharacterError/)],
    ["atob('YQ==')", "a"],
    ["atob(' Y Q = = ')", "a"],
    ["atob('YQ')", "a"],
    ["atob('YQ=')", expect.stringMatching(/^InvalidCharacterError/)],
    ["atob('Y')", expect.stringMatching(/^InvalidCharacterError/)],
    ["atob('Y-_=')", expect.stringMatching(/^InvalidCharacterError/)],
    ["new Uint8Array([255, 254]).toBase64()", "//4="],
    ["new Uint8Array([255, 254]).toBase64({alphabet: 'base64url', omitPadding: true})", "__4"],
    ["[...Uint8Array.fromBase64('__4', {alphabet: 'base64url'})]", [255, 254]],
    ["Uint8Array.fromBase64('!')", expect.stringMatching(/^SyntaxError/)],
    ["new Uint8Array([1, 171]).toHex()", "01ab"],
    ["[...Uint8Array.fromHex('01AB')]", [1, 171]],
    ["Uint8Array.fromHex('0')", expect.stringMatching(/^SyntaxError/)],
    [
      "(() => { const b = new Uint8Array(3); return [b.setFromHex('0102'), [...b]] })()",
      [{ read: 4, written: 2 }, [1, 2, 0]],
    ],
  ])("%s", async (expression, expected) => {
    expect(await value(expression)).toEqual(expected);
  });
});

describe("structuredClone", () => {
  test("clones what the standard clones", async () => {
    expect(
      await value(`(() => { const o = {d: new Date(5), m: new Map([[1, {a: [1,,3]}]]), s: new Set([1]), r: /x/gi, b: new Uint8Array([1, 2]).buffer, e: new RangeError('r', {cause: 1}), n: -0, u: undefined, big: 10n}; o.self = o;
        const c = structuredClone(o);
        return [c !== o, c.self === c, c.d.getTime(), c.m.get(1).a.length, 1 in c.m.get(1).a, c.s.has(1), String(c.r), new Uint8Array(c.b)[1], c.e instanceof RangeError, c.e.message, c.e.cause, Object.is(c.n, -0), 'u' in c, c.big] })()`),
    ).toEqual([true, true, 5, 3, false, true, "/x/gi", 2, true, "r", 1, true, true, 10n]);
  });

  test("refuses functions and symbols, drops prototypes, transfers buffers", async () => {
    expect(
      await value(`(() => { const names = [() => {}, Symbol('x'), {f() {}}, new WeakMap()].map(v => { try { structuredClone(v); return 'cloned' } catch (e) { return [e.name, e.code, e instanceof DOMException].join() } });
        const b = new ArrayBuffer(8); const c = structuredClone(b, {transfer: [b]});
        return [names, b.byteLength, c.byteLength, structuredClone(new (class A { x = 1 })()).constructor.name] })()`),
    ).toEqual([Array(4).fill("DataCloneError,25,true"), 0, 8, "Object"]);
  });
});

describe("events and abort", () => {
  test("listeners, options and the event itself", async () => {
    expect(
      await value(`(() => { const t = new EventTarget(); const seen = []; const h = e => seen.push(e.type + e.target.constructor.name);
        t.addEventListener('a', h); t.addEventListener('a', h); t.addEventListener('a', {handleEvent() { seen.push('object') }}); t.addEventListener('a', () => seen.push('once'), {once: true});
        t.dispatchEvent(new Event('a')); t.removeEventListener('a', h); t.dispatchEvent(new CustomEvent('a', {detail: 5}));
        const e = new Event('b', {cancelable: true}); t.addEventListener('b', x => x.preventDefault());
        return [seen, t.dispatchEvent(e), e.defaultPrevented, new CustomEvent('x', {detail: 5}).detail] })()`),
    ).toEqual([["aEventTarget", "object", "once", "object"], false, true, 5]);
  });

  test("what a listener throws is logged and stops nobody", async () => {
    const run = await guest.run(
      "const target = new EventTarget(); let n = 0; target.addEventListener('a', () => { throw new Error('listener') }); target.addEventListener('a', () => n++); target.dispatchEvent(new Event('a')); return n",
    );
    expect(run).toMatchObject({
      value: 1,
      console: [{ level: "error", text: expect.stringContaining("Error: listener") }],
    });
  });

  test.each([
    [
      "(() => { const c = new AbortController(); const {signal} = c; const seen = []; signal.onabort = e => seen.push('on' + e.type); signal.addEventListener('abort', () => seen.push(signal.aborted)); c.abort(); c.abort('again'); return [seen, signal.reason.name, signal.reason.code] })()",
      [["onabort", true], "AbortError", 20],
    ],
    [
      "(() => { const c = new AbortController(); c.abort('why'); try { c.signal.throwIfAborted() } catch (e) { return e } })()",
      "why",
    ],
    ["new AbortController().signal.throwIfAborted()", undefined],
    [
      "(() => { const s = AbortSignal.abort(); return [s.aborted, s.reason instanceof DOMException, s instanceof EventTarget] })()",
      [true, true, true],
    ],
    [
      "(() => { const a = new AbortController(), b = new AbortController(); const any = AbortSignal.any([a.signal, b.signal]); b.abort(7); return [any.aborted, any.reason] })()",
      [true, 7],
    ],
    ["AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)]).reason", 1],
    ["AbortSignal.any([]).aborted", false],
    ["AbortSignal.any([{}])", expect.stringMatching(/^TypeError/)],
    [
      "new Promise(r => { const s = AbortSignal.timeout(20); s.onabort = () => r([s.reason.name, performance.now()]) })",
      ["TimeoutError", 20],
    ],
    ["AbortSignal.timeout(-1)", expect.stringMatching(/^TypeError/)],
    ["new AbortSignal()", "TypeError: Illegal constructor"],
  ])("%s", async (expression, expected) => {
    expect(await value(expression)).toEqual(expected);
  });

  test("DOMException is an error with its own name and code", async () => {
    expect(
      await value(
        "(() => { const e = new DOMException('m', 'NotFoundError'); return [e.name, e.message, e.code, e instanceof Error, Error.isError(e), String(e), DOMException.NOT_FOUND_ERR, new DOMException().name, new DOMException('', 'Mine').code, typeof e.stack, Object.prototype.toString.call(e)] })()",
      ),
    ).toEqual([
      "NotFoundError",
      "m",
      8,
      true,
      true,
      "NotFoundError: m",
      8,
      "Error",
      0,
      "string",
      "[object DOMException]",
    ]);
  });
});

describe("Headers", () => {
  test("combine, sort and keep cookies apart", async () => {
    expect(
      await value(`(() => { const h = new Headers([['B', ' 1 '], ['a', '2']]); h.append('b', '3'); h.append('Set-Cookie', 'x=1'); h.append('set-cookie', 'y=2');
        const seen = []; h.forEach((v, k) => seen.push(k + '=' + v));
        return [[...h], h.get('B'), h.get('nope'), h.has('A'), h.getSetCookie(), h.get('set-cookie'), seen, [...h.keys()].join(), [...h.values()].join('|'), (h.set('b', 'n'), h.delete('a'), [...h.entries()].length)] })()`),
    ).toEqual([
      [
        ["a", "2"],
        ["b", "1, 3"],
        ["set-cookie", "x=1"],
        ["set-cookie", "y=2"],
      ],
      "1, 3",
      null,
      true,
      ["x=1", "y=2"],
      "x=1, y=2",
      ["a=2", "b=1, 3", "set-cookie=x=1", "set-cookie=y=2"],
      "a,b,set-cookie,set-cookie",
      "2|1, 3|x=1|y=2",
      3,
    ]);
  });

  test.each([
    "new Headers([['a b', '1']])",
    "new Headers([['', '1']])",
    "new Headers({é: '1'})",
    "new Headers([['a', 'x\\ny']])",
    "new Headers([['a', 'x\\u0000']])",
    "new Headers([['a', '€']])",
    "new Headers([['a']])",
    "new Headers([['a', 'b', 'c']])",
    "new Headers(null)",
    "new Headers('text')",
    "new Headers().get('a b')",
  ])("%s is refused", async (expression) => {
    expect(await value(expression)).toMatch(/^TypeError/);
  });

  test("copy from Headers and records", async () => {
    expect(
      await value(
        "[[...new Headers(new Headers({a: 1, B: 'x'}))], [...new Headers({[Symbol.iterator]: undefined, c: 2})].length]",
      ),
    ).toEqual(expect.stringMatching(/^TypeError/));
    expect(await value("[...new Headers(new Headers({a: 1, B: 'x'}))]")).toEqual([
      ["a", "1"],
      ["b", "x"],
    ]);
  });
});

describe("Response", () => {
  test.each([
    ["new Response().status", 200],
    [
      "[new Response('x').headers.get('content-type'), new Response(new URLSearchParams('a=b')).headers.get('content-type'), new Response(new Uint8Array()).headers.get('content-type')]",
      ["text/plain;charset=UTF-8", "application/x-www-form-urlencoded;charset=UTF-8", null],
    ],
    ["new Response('{\"a\":1}').json()", { a: 1 }],
    ["new Response('é').bytes()", new Uint8Array([195, 169])],
    ["(async () => (await new Response('ab').arrayBuffer()).byteLength)()", 2],
    ["new Response(new Uint8Array([1, 2, 3]).subarray(1)).bytes()", new Uint8Array([2, 3])],
    ["new Response().text()", ""],
    [
      "(async () => { const r = new Response('x'); await r.text(); return [r.bodyUsed, await r.text().catch(e => e.name)] })()",
      [true, "TypeError"],
    ],
    [
      "(async () => { const r = new Response('x', {status: 201, statusText: 'Made', headers: {a: 'b'}}); const c = r.clone(); return [await r.text(), await c.text(), c.status, c.statusText, c.headers.get('a'), c.ok] })()",
      ["x", "x", 201, "Made", "b", true],
    ],
    [
      "(async () => { const r = new Response('x'); await r.text(); return r.clone() })()",
      expect.stringMatching(/^TypeError/),
    ],
    [
      "(async () => { const r = Response.json({a: [1]}, {status: 400}); return [r.status, r.ok, r.headers.get('content-type'), await r.text()] })()",
      [400, false, "application/json", '{"a":[1]}'],
    ],
    ["Response.json(undefined)", expect.stringMatching(/^TypeError/)],
    [
      "(() => { const r = Response.redirect('https://x.example/a', 303); return [r.status, r.headers.get('location')] })()",
      [303, "https://x.example/a"],
    ],
    ["Response.redirect('https://x.example/', 200)", expect.stringMatching(/^RangeError/)],
    ["[Response.error().type, Response.error().status]", ["error", 0]],
    ["Response.error().headers.set('a', 'b')", expect.stringMatching(/^TypeError/)],
    ["new Response('', {status: 199})", expect.stringMatching(/^RangeError/)],
    ["new Response('', {status: 600})", expect.stringMatching(/^RangeError/)],
    ["new Response('x', {status: 204})", expect.stringMatching(/^TypeError/)],
    ["new Response(null, {status: 204}).status", 204],
    ["new Response('', {statusText: 'a\\nb'})", expect.stringMatching(/^TypeError/)],
    ["new Response(null).body", null],
    ["new Response('x').body", expect.stringMatching(/^TypeError: body: there are no streams/)],
    ["new Response('x').blob()", expect.stringMatching(/^NotSupportedError/)],
  ])("%s", async (expression, expected) => {
    expect(await value(expression)).toEqual(expected);
  });
});

describe("Request", () => {
  test.each([
    [
      "(() => { const r = new Request('https://h/a#f'); return [r.url, r.method, r.redirect, r.bodyUsed, r.signal.aborted] })()",
      ["https://h/a#f", "GET", "follow", false, false],
    ],
    ["new Request('https://h', {method: 'post', body: 'x'}).method", "POST"],
    ["new Request('https://h', {method: 'patch'}).method", "patch"],
    ["new Request('https://h', {method: 'TRACE'})", expect.stringMatching(/^TypeError/)],
    ["new Request('https://h', {method: 'a b'})", expect.stringMatching(/^TypeError/)],
    ["new Request('/relative')", expect.stringMatching(/^TypeError/)],
    ["new Request('https://u:p@h')", expect.stringMatching(/^TypeError/)],
    [
      "new Request('https://h', {body: 'x'})",
      expect.stringMatching(/^TypeError: Request: a GET request has no body/),
    ],
    ["new Request('https://h', {redirect: 'sometimes'})", expect.stringMatching(/^TypeError/)],
    ["new Request('https://h', {signal: {}})", expect.stringMatching(/^TypeError/)],
    [
      "(async () => { const r = new Request('https://h', {method: 'PUT', body: 'abc', headers: {'x-a': '1'}}); const c = r.clone(); const d = new Request(r, {headers: {'x-b': '2'}}); return [await c.text(), await d.text(), r.bodyUsed, [...c.headers].length, [...d.headers].map(String)] })()",
      ["abc", "abc", true, 2, ["x-b,2"]],
    ],
    [
      "(() => { const c = new AbortController(); const r = new Request('https://h', {signal: c.signal}); c.abort('x'); return [r.signal.aborted, r.signal.reason] })()",
      [true, "x"],
    ],
  ])("%s", async (expression, expected) => {
    expect(await value(expression)).toEqual(expected);
  });
});

describe("fetch", () => {
  const received = {
    status: 201,
    statusText: "Created",
    headers: [
      ["content-type", "application/json"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
    ],
    url: "https://h/final",
    redirected: true,
    body: new TextEncoder().encode('{"ok":true}'),
  };

  test("is host.fetch, a host call in the words of the web", async () => {
    const run = await guest.run(
      `const r = await fetch(new URL('https://h/x?y'), {method: 'POST', body: 'é', headers: {'X-A': '1'}, idempotencyKey: 'k'});
       return [fetch === host.fetch, r instanceof Response, r.status, r.statusText, r.ok, r.url, r.redirected, r.type, r.headers.getSetCookie(), await r.json(), (() => { try { r.headers.set('a', 'b') } catch (e) { return e.name } })()]`,
      { host: { fetch: () => received } },
    );
    expect(run.value).toEqual([
      true,
      true,
      201,
      "Created",
      true,
      "https://h/final",
      true,
      "basic",
      ["a=1", "b=2"],
      { ok: true },
      "TypeError",
    ]);
    expect(run.calls).toEqual([
      {
        position: 0,
        name: "fetch",
        args: [
          {
            url: "https://h/x?y",
            method: "POST",
            headers: [
              ["content-type", "text/plain;charset=UTF-8"],
              ["x-a", "1"],
            ],
            redirect: "follow",
            body: new Uint8Array([195, 169]),
            idempotencyKey: "k",
          },
        ],
      },
    ]);
  });

  test("without the grant it is refused, and typeof still finds it", async () => {
    const run = await guest.run(
      "try { await fetch('https://h') } catch (e) { return [typeof fetch, e.code, e.message] }",
      {
        names: ["echo"],
      },
    );
    expect(run.value).toEqual([
      "function",
      "denied",
      "host.fetch is not granted to this script; granted: echo.",
    ]);
  });

  test("a refusal of the parent is a HostError with the script's lines", () => {
    guest.start(
      "try { await fetch('https://h') } catch (e) { return [e instanceof HostError, e.code, /script\\.js:2:/.test(e.stack)] }",
      {
        names: ["fetch"],
      },
    );
    guest.deliverOutcome(0, { error: { code: "denied", message: "h is not allowed", retryable: false } });
    const last = guest.frames.at(-1);
    expect(last === undefined ? undefined : sentValue(last)).toEqual([true, "denied", true]);
  });

  test("an abort cancels the call", () => {
    guest.start(
      "const c = new AbortController(); const p = fetch('https://h', {signal: c.signal}); c.abort(); try { await p } catch (e) { return e.name }",
      {
        names: ["fetch"],
      },
    );
    expect(guest.frames.map(({ name }) => name)).toEqual(["hostCall0", "cancelCall", "finished0"]);
  });

  test("a bad request makes no call", async () => {
    const run = await guest.run("try { await fetch('not a url') } catch (e) { return e.name }", {
      names: ["fetch"],
    });
    expect(run).toMatchObject({ value: "TypeError", calls: [] });
  });
});

describe("the language's newer parts", () => {
  test.each([
    ["Array.fromAsync((async function* () { yield 1; yield 2 })(), x => x * 2)", [2, 4]],
    ["Array.fromAsync([Promise.resolve(1), 2])", [1, 2]],
    ["[...new Set([1, 2]).union(new Set([3]))]", [1, 2, 3]],
    ["Object.groupBy([1, 2, 3], x => x % 2 ? 'odd' : 'even').odd", [1, 3]],
    ["[1, 2, 3].values().filter(x => x > 1).toArray()", [2, 3]],
    ["Promise.try(() => 5)", 5],
  ])("%s", async (expression, expected) => {
    expect(await value(expression)).toEqual(expected);
  });
});
