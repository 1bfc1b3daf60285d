// What the image maker tries on a finished image, to learn which pages an ordinary script writes (placement.c): values,
// text, collections, classes, regular expressions, promises, a host call and its outcome. Its results are not looked at.
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
  async function main(input, host) {
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
    const answer = await host.sample.call({ total, text: text.slice(0, 20) });
    const parts = await Promise.all([1, 2].map(async (n) => n + Math.round(parseFloat("1.5"))));
    return { ok: seen.size > 0, total, parts, answer, list: Array.from({ length: 3 }, (_, at) => at ** 2) };
  }
  const exports = {};
  Object.defineProperty(exports, "default", { get: () => main, enumerable: true });
  return exports;
};
