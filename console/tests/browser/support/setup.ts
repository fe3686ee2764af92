// Starts one real node for all tests of the browser, checks that the types are those of its OpenAPI document, and gives it jobs.
// CAMPANILE_BIN: the program; default: what `cargo build` makes.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    server: string;
    rpc: string;
    token: string;
    program: string;
  }
}

const PATIENCE_MS = 60_000;

export default async function setup(project: TestProject) {
  const root = resolve(import.meta.dirname, "../../..");
  const program = resolve(root, "..", process.env.CAMPANILE_BIN ?? "target/debug/campanile");
  if (!existsSync(program)) throw new Error(`${program} is not there: build the node, or name it in CAMPANILE_BIN`);
  const directory = mkdtempSync(join(tmpdir(), "campanile-console-"));
  const node = spawn(program, ["dev", "--data", directory, "--http", "127.0.0.1:0", "--rpc", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = async () => {
    const ended = new Promise((done) => node.once("exit", done));
    if (node.exitCode === null && node.kill("SIGTERM")) await ended;
    rmSync(directory, { recursive: true, force: true });
  };
  let facts: Record<string, string>;
  let server: string;
  try {
    facts = await firstLines(node);
    server = `http://${facts.http}`;
    execFileSync("node", ["scripts/types.mjs", server, "--check"], { cwd: root, stdio: "inherit" });
  } catch (thrown) {
    await stop();
    throw thrown;
  }
  project.provide("server", server);
  project.provide("rpc", facts.rpc!);
  project.provide("token", facts.token!);
  project.provide("program", program);
  return stop;
}

/** What `campanile dev` says first: its addresses and its token. */
function firstLines(node: ChildProcess): Promise<Record<string, string>> {
  return new Promise((resolve, reject) => {
    const facts: Record<string, string> = {};
    let rest = "";
    const timer = setTimeout(() => reject(new Error("the node did not start in time")), PATIENCE_MS);
    node.once("exit", (code) => reject(new Error(`the node ended with ${code}`)));
    node.stdout!.on("data", (bytes: Buffer) => {
      rest += bytes.toString();
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const [, name, value] = /^(\w+)=(.+)$/.exec(line) ?? [];
        if (name && value) facts[name] = value;
      }
      if (facts.http && facts.rpc && facts.token) {
        clearTimeout(timer);
        resolve(facts);
      }
    });
  });
}
