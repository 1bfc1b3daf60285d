/** What every command for flows is given: what was typed, where to write, the data folder, the way to the service. */

import { userInfo } from "node:os";
import type { FlowService } from "@flowcell/flows";
import { limitCeilings } from "@flowcell/protocol";
import { indented, objectText } from "../cli/human.js";
import { readInput } from "../cli/input.js";
import type { Streams, Typed } from "../cli/typed.js";
import { type Connection, connect } from "../owner/connect.js";
import { type DataFolder, dataFolderPath, openDataFolder } from "../owner/data-folder.js";
import { OwnerLeft } from "../owner/failures.js";
import type { Drives, OwnerParts } from "../owner/open.js";

export class Context {
  readonly typed: Typed;
  readonly streams: Streams;
  readonly parts: OwnerParts;

  constructor(typed: Typed, streams: Streams, parts: OwnerParts) {
    this.typed = typed;
    this.streams = streams;
    this.parts = parts;
  }

  get json(): boolean {
    return this.typed.flag("json");
  }

  /** Who decides, for the record. */
  get by(): string {
    try {
      return userInfo().username;
    } catch {
      // A user without an entry in the system's list.
      return `user ${process.getuid?.() ?? "?"}`;
    }
  }

  /** Writes a line for people; with `--json` nothing but the object is printed. */
  say(text: string): void {
    if (!this.json) this.streams.out(`${text}\n`);
  }

  remark(text: string): void {
    this.streams.err(`${indented(text, "  ")}\n`);
  }

  /** The one object of `--json`. */
  object(value: unknown): void {
    this.streams.out(objectText(value));
  }

  folder(create = false): DataFolder {
    return openDataFolder(dataFolderPath(this.typed.text("data"), this.parts.environment), create);
  }

  /** The value of an option that takes JSON or a file; undefined when it is absent. */
  value(name: "input" | "value"): unknown {
    return readInput(this.typed.text(name), limitCeilings.inputBytes, `--${name}`);
  }

  async connect(drives: Drives, create = false): Promise<Connection> {
    return await connect(this.folder(create), drives, this.parts);
  }

  /** For commands that ask or change one thing and set nothing going. */
  async ask<Answer>(use: (service: FlowService) => Promise<Answer>, create = false): Promise<Answer> {
    for (;;) {
      const connection = await this.connect("nothing", create);
      try {
        return await use(connection.service);
      } catch (error) {
        if (!(error instanceof OwnerLeft)) throw error;
        // Whoever asks next may be the owner itself.
      } finally {
        await connection.close();
      }
    }
  }
}
