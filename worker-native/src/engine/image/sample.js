// What the image maker tries on a finished image, to learn which pages an ordinary script writes (placement.c): values,
// text, collections, classes, regular expressions, promises, a host call and its outcome, and what codemode puts around a
// script (generated code, a proxy, globals). Its results are not looked at.
() => {
  class Item {
    #count = 0;
    constructor(name) {
      this.name = name;
    }
    get count() {
      return this.#count;
    }
    add(n) {
      this.#count += n;
      return this;
    }
    toString() {
      return `${this.name}:${this.count}`;
    }
  }
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { __proto__: null, value, writable: true, configurable: true });
  /* As codemode finds a tool: a function that is made from text at the first use, kept in an object without a prototype. */
  const toolsOf = (host) => {
    const kept = { __proto__: null };
    let make;
    return new Proxy(host.sample, {
      __proto__: null,
      get: (own, name) => {
        if (typeof name === "symbol") return own[name];
        make ??= Function(
          'return (host, known) => { "use strict"; const made = { __proto__: null }; return (name) => ' +
            "(made[name] ??= name in host && Object.hasOwn(known, name) ? known[name] : undefined); }",
        )()(host, {});
        kept[name] ??= name in own ? own[name] : make(name);
        return kept[name];
      },
    });
  };
  const refusal = (name, arity) => {
    try {
      throw new TypeError(`${name} is not a tool here, ${arity}`);
    } catch (error) {
      return (
        error.message.replaceAll(/(, )?zz[.][\w$.]+/g, "").replaceAll("host.", "") +
        String(error.stack).length
      );
    }
  };
  /* Compiled, never called: a name in a script is counted where the image holds it, and these are in many scripts. */
  const globals = `Array BigInt Boolean Date Error Function Infinity JSON Map Math NaN Number Object Promise Proxy RangeError
    Reflect RegExp Set String Symbol SyntaxError TypeError URL Uint8Array WeakMap clearTimeout console globalThis isNaN
    parseFloat parseInt setTimeout structuredClone undefined a b c d e f g h i j k l m n o p q r s t u v w x y z
    A B C D E F G H I J K L M N O P Q R S T U V W X Y Z _ $`;
  const properties = `abs add all allSettled any apply args assign asyncIterator at bind body call catch cause ceil charAt charCodeAt
    clear code codePointAt codemode concat configurable constructor count create data date debug defineProperty delete done end
    endsWith entries enumerable error every exec fetch fill filter finally find findIndex flat flatMap floor forEach freeze from
    fromEntries get getDate getDay getFullYear getHours getMonth getOwnPropertyNames getPrototypeOf getTime groupBy has hasOwn
    hasOwnProperty headers host id includes index indexOf info input isArray isFinite isInteger item items iterator join json key
    keys kind label lastIndexOf length list localeCompare log map match matchAll max message method min name next normalize now of
    ok output ownKeys padEnd padStart parse path pop position pow prototype push question race random raw reduce reject repeat
    replace replaceAll resolve result results reverse round search set shift sign size slice some sort source splice split sqrt
    stack start startsWith state status stringify substring symbol test text then ticket title toFixed toISOString toJSON
    toLowerCase toString toUpperCase tools total trim trimEnd trimStart trunc type unshift url user value valueOf values warn
    writable`;
  const list = (words) => words.split(/\s+/);
  const vocabulary = Function(
    `return [${list(globals)}, ${list(properties).map((name) => `Object.${name}`)}]`,
  );
  async function main(input, host) {
    const tools = toolsOf(host);
    define("sample", tools);
    refusal(typeof tools.missing, vocabulary.length);
    const groups = new Map();
    for (const { kind, price } of [
      { kind: "a", price: 1.5 },
      { kind: "b", price: 2 },
      { kind: "a", price: 3 },
    ]) {
      groups.set(kind, (groups.get(kind) ?? 0) + price);
    }
    const names = [...groups.keys()]
      .map((name) => name.toUpperCase())
      .filter(Boolean)
      .sort();
    const text = JSON.stringify({ names, at: new Date(0).toISOString(), input });
    const found =
      /"([A-Z])"/g
        [Symbol.replace](text, (whole, letter) => whole.length + letter.toLowerCase())
        .match(/\w+/g) ?? [];
    const total = found.reduce((sum, word) => sum + word.length, 0);
    const items = Object.entries({ x: 1, y: 2 }).map(([name, n]) => new Item(name).add(n));
    try {
      null.property;
    } catch (error) {
      items.push(new Item(String(error.message)));
    }
    console.log("tried", total, items.join());
    const seen = new Set(found.slice(0, 3));
    const answer = await tools.call({ total, text: text.slice(0, 20) });
    const parts = await Promise.all([1, 2].map(async (n) => n + Math.round(parseFloat("1.5"))));
    return { ok: seen.size > 0, total, parts, answer, list: Array.from({ length: 3 }, (_, at) => at ** 2) };
  }
  const exports = {};
  Object.defineProperty(exports, "default", { get: () => main, enumerable: true });
  return exports;
};
