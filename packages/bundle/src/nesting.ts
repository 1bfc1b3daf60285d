/**
 * A linear look at a source before any parser sees it. Parsers recurse: a file of open brackets, of `!` or of `a=>` ends
 * esbuild's process (and prints its stack) or keeps it busy for minutes, and exhausts the stack that acorn runs on. The
 * worker needs no such help, its parser has a stack limit of its own; this scan only keeps the parent's tools alive.
 *
 * It reads tokens roughly: where it guesses wrong (a regular expression after a closing bracket) it may count a bracket
 * too many or too few, which moves the limit a little and nothing else.
 */

/** Brackets, template substitutions and right-nested operators. Real code stays below 100. */
export const nestingMax = 2_000;

const openers = "([{";
const closers = ")]}";
const operatorWord =
  /^(?:await|case|delete|do|else|extends|for|if|in|infer|instanceof|keyof|new|of|return|throw|typeof|void|while|with|yield)$/;

/** The offset at which nesting exceeds `nestingMax`, or undefined. */
export function findDeepNesting(text: string): number | undefined {
  return new Scanner(text).run();
}

class Scanner {
  readonly #text: string;
  #at = 0;
  /** Links of the expression chain at each open bracket level; `templates` marks levels opened by `${`. */
  #links = 0;
  readonly #outer: number[] = [];
  #outerSum = 0;
  readonly #templates: boolean[] = [];
  /** Whether the previous token can end an expression: decides what `/` and a line end mean. */
  #ended = false;

  constructor(text: string) {
    this.#text = text;
  }

  run(): number | undefined {
    const text = this.#text;
    while (this.#at < text.length) {
      const start = this.#at;
      const unit = text.charAt(start);
      if (isWordStart(unit)) this.#word();
      else if (unit === '"' || unit === "'") this.#string(unit);
      else if (unit === "`") this.#template();
      else if (unit === "/") this.#slash();
      else if (unit === "\n" || unit === "\r") this.#lineEnd();
      else if (unit === " " || unit === "\t") this.#at++;
      else this.#punctuation(unit);
      if (this.#outer.length + this.#outerSum + this.#links > nestingMax) return start;
    }
    return undefined;
  }

  #word(): void {
    const start = this.#at;
    while (this.#at < this.#text.length && isWordPart(this.#text.charCodeAt(this.#at))) this.#at++;
    const long = this.#at - start > 10;
    const operator = !long && operatorWord.test(this.#text.slice(start, this.#at));
    if (operator) this.#links++;
    this.#ended = !operator;
  }

  #string(quote: string): void {
    this.#at++;
    while (this.#at < this.#text.length) {
      const unit = this.#text.charAt(this.#at++);
      if (unit === "\\") this.#at++;
      else if (unit === quote || unit === "\n") break;
    }
    this.#ended = true;
  }

  /** From a backtick or from the `}` of a substitution to the next `${` or the closing backtick. */
  #template(): void {
    this.#at++;
    while (this.#at < this.#text.length) {
      const unit = this.#text.charAt(this.#at++);
      if (unit === "\\") this.#at++;
      else if (unit === "`") break;
      else if (unit === "$" && this.#text.charAt(this.#at) === "{") {
        this.#at++;
        this.#open(true);
        return;
      }
    }
    this.#ended = true;
  }

  /** A comment, a division or a regular expression. */
  #slash(): void {
    const next = this.#text.charAt(this.#at + 1);
    if (next === "/") this.#at = indexOrEnd(this.#text, "\n", this.#at);
    else if (next === "*") this.#at = indexOrEnd(this.#text, "*/", this.#at + 2) + 2;
    else if (this.#ended) {
      this.#at++;
      this.#ended = false;
    } else this.#regularExpression();
  }

  #regularExpression(): void {
    let inClass = false;
    this.#at++;
    while (this.#at < this.#text.length) {
      const unit = this.#text.charAt(this.#at++);
      if (unit === "\\") this.#at++;
      else if (unit === "[") inClass = true;
      else if (unit === "]") inClass = false;
      else if (unit === "\n" || (unit === "/" && !inClass)) break;
    }
    this.#ended = true;
  }

  /** A line end closes the chain where a statement can end and the next line does not go on with it. */
  #lineEnd(): void {
    const text = this.#text;
    while (this.#at < text.length && " \t\r\n".includes(text.charAt(this.#at))) this.#at++;
    const next = text.charAt(this.#at);
    if (this.#ended && (isWordStart(next) || "\"'`{}".includes(next))) this.#links = 0;
  }

  #punctuation(unit: string): void {
    if (closers.includes(unit)) {
      this.#close();
      return;
    }
    this.#at++;
    if (openers.includes(unit)) {
      this.#open(false);
      return;
    }
    this.#ended = false;
    if (unit === ";" || unit === ",") this.#links = 0;
    else if (this.#nestsRight(unit)) this.#links++;
  }

  /** Operators whose operand on the right nests; `a + b + c` and `a === b` are flat for the parsers. */
  #nestsRight(unit: string): boolean {
    if (unit === "=")
      return !"=!<>".includes(this.#text.charAt(this.#at - 2)) && this.#text.charAt(this.#at) !== "=";
    if (unit === "*") return this.#text.charAt(this.#at) === "*";
    return "?!~.<:".includes(unit);
  }

  #open(template: boolean): void {
    // A call or an index after an expression is a link of its chain: a()()() nests to the left.
    const links = this.#ended && !template ? this.#links + 1 : this.#links;
    this.#outer.push(links);
    this.#outerSum += links;
    this.#templates.push(template);
    this.#links = 0;
    this.#ended = false;
  }

  #close(): void {
    const template = this.#templates.pop() === true;
    this.#links = this.#outer.pop() ?? 0;
    this.#outerSum -= this.#links;
    if (template) {
      this.#template();
      return;
    }
    // Statements follow a block without a separator; what follows an expression in braces begins with an operator.
    if (this.#text.charAt(this.#at) === "}") this.#links = 0;
    this.#at++;
    this.#ended = true;
  }
}

function indexOrEnd(text: string, what: string, from: number): number {
  const index = text.indexOf(what, from);
  return index === -1 ? text.length : index;
}

function isWordStart(unit: string): boolean {
  return unit !== "" && isWordPart(unit.charCodeAt(0));
}

function isWordPart(code: number): boolean {
  return (
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x5f ||
    code === 0x24 ||
    code >= 0x80
  );
}
