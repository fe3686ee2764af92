// A cluster on loopback as docs/guides/cluster.md sets it up: Apache Cassandra (deploy/cassandra), three nodes, an executor.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { inject } from "vitest";

const PATIENCE_MS = 240_000;
const NODES = 3;

interface Ports {
  http: number;
  rpc: number;
  gossip: number;
  gateway: number;
}

export interface RealCluster {
  /** Addresses of the nodes' HTTP. */
  urls: string[];
  token: string;
  /** Ends a node as an operator does, and starts it again when it is called. */
  stop: (node: number) => Promise<() => Promise<void>>;
  end: () => Promise<void>;
}

/** Ports that were free when they were asked for, all at once so that they differ. */
async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((done) => {
          const server = createServer().listen(0, "127.0.0.1", () => done(server));
        }),
    ),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}

const gone = (child: ChildProcess) =>
  new Promise<void>((done) =>
    child.exitCode === null && child.signalCode === null ? child.once("exit", () => done()) : done(),
  );

/** Resolves with the text when it fits. */
function said(child: ChildProcess, what: RegExp, name: string, errors: string): Promise<RegExpExecArray> {
  return new Promise((done, fail) => {
    let text = "";
    const end = (error: string) =>
      fail(new Error(`${name} ${error}:\n${text}\n${readFileSync(errors, "utf8").slice(-2000)}`));
    const timer = setTimeout(() => end("did not become ready"), PATIENCE_MS);
    child.once("exit", (code) => end(`ended with ${code}`));
    child.stdout!.on("data", (bytes: Buffer) => {
      text += bytes.toString();
      const found = what.exec(text);
      if (!found) return;
      clearTimeout(timer);
      done(found);
    });
  });
}

export async function startCluster(): Promise<RealCluster> {
  const program = inject("program");
  const directory = mkdtempSync(join(tmpdir(), "campanile-console-cluster-"));
  const started: ChildProcess[] = [];
  const run = (args: string[], env: NodeJS.ProcessEnv) =>
    execFileSync(program, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const begin = (command: string, args: string[], env: NodeJS.ProcessEnv, name: string) => {
    const errors = join(directory, `${name}.log`);
    const child = spawn(command, args, { stdio: ["pipe", "pipe", openSync(errors, "a")], env });
    started.push(child);
    return { child, errors };
  };
  const end = async () => {
    // The store ends with its stdin, the others with the signal.
    for (const child of started.reverse()) {
      child.stdin?.end();
      child.kill("SIGTERM");
      await gone(child);
    }
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const script = resolve(import.meta.dirname, "../../../../deploy/cassandra/cassandra.sh");
    execFileSync(script, ["prepare"], { stdio: ["ignore", "ignore", "inherit"] });
    const store = begin("bash", [script, "run", join(directory, "store"), "1"], process.env, "store");
    const [, contact] = await said(store.child, /node 1 (\S+) [^]*ready/, "the store", store.errors);

    const numbers = await freePorts(4 * NODES);
    const ports = Array.from({ length: NODES }, (_, index): Ports => {
      const [http, rpc, gossip, gateway] = numbers.slice(4 * index, 4 * index + 4) as [number, number, number, number];
      return { http, rpc, gossip, gateway };
    });
    const at = (port: number) => `127.0.0.1:${port}`;
    const keys = join(directory, "keys");
    run(["cluster", "new-keys", "--name", "console", keys], process.env);
    const tokens = join(directory, "tokens");
    const made = run(["token", "new", "--name", "olga", "--role", "operator", "--append", tokens], process.env);
    const token = made.split("\n")[0]!.trim();
    const secrets = join(directory, "secrets.keys");
    writeFileSync(secrets, run(["secrets", "new-key"], process.env), { mode: 0o600 });
    const common: NodeJS.ProcessEnv = {
      ...process.env,
      CAMPANILE_CQL__CONTACT_POINTS: contact,
      CAMPANILE_CQL__REPLICATION: "1",
      CAMPANILE_NODE__SHARDS: "16",
      CAMPANILE_CLUSTER__NAME: "console",
      CAMPANILE_CLUSTER__SEEDS: ports.map(({ gossip }) => at(gossip)).join(","),
      CAMPANILE_CLUSTER__KEY_FILE: join(keys, "gossip.keys"),
      CAMPANILE_CLUSTER__TLS_CERT_FILE: join(keys, "node.pem"),
      CAMPANILE_CLUSTER__TLS_KEY_FILE: join(keys, "node-key.pem"),
      CAMPANILE_CLUSTER__TLS_CA_FILE: join(keys, "ca.pem"),
      CAMPANILE_AUTH__TOKEN_FILE: tokens,
      CAMPANILE_SECRETS__KEY_FILE: secrets,
      CAMPANILE_API_TOKEN: token,
    };
    run(["schema", "apply"], common);
    const nodes: ChildProcess[] = [];
    const start = async (index: number) => {
      const { http, rpc, gossip, gateway } = ports[index]!;
      const name = `n${index + 1}`;
      mkdirSync(join(directory, name), { recursive: true });
      const env = {
        ...common,
        CAMPANILE_NODE__NAME: name,
        CAMPANILE_NODE__DATA_DIR: join(directory, name),
        CAMPANILE_HTTP__LISTEN: at(http),
        CAMPANILE_RPC__LISTEN: at(rpc),
        CAMPANILE_CLUSTER__GOSSIP_LISTEN: at(gossip),
        CAMPANILE_CLUSTER__GATEWAY_LISTEN: at(gateway),
      };
      const { child, errors } = begin(program, ["server"], env, name);
      nodes[index] = child;
      await said(child, /^rpc=/m, `node ${name}`, errors);
    };
    await Promise.all(ports.map((_, index) => start(index)));
    const rpc = ports.map((port) => at(port.rpc)).join(",");
    begin(program, ["executor", "--rpc", rpc, "--slots", "8", "--id", "runner"], common, "executor");
    return {
      urls: ports.map(({ http }) => `http://${at(http)}`),
      token,
      stop: async (node) => {
        const child = nodes[node - 1]!;
        child.kill("SIGTERM");
        await gone(child);
        return () => start(node - 1);
      },
      end,
    };
  } catch (thrown) {
    await end();
    throw thrown;
  }
}
