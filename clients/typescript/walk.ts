// A whole study through a generated client: create it, enqueue a configuration,
// play its worker, follow its events, read the leaderboard, and handle errors.
//
//     TANDEM_SERVER=http://127.0.0.1:7171 TANDEM_TOKEN=... node walk.js
//
// Nothing here knows the server but tandem.d.ts, which is generated from its
// OpenAPI document. Lines marked @ts-expect-error are mistakes that the types
// have to find: the program does not compile if they do not.
import createClient from "openapi-fetch";
import type { components, paths } from "./tandem.js";

declare const process: { env: Record<string, string | undefined>; exit(code: number): never };

type Schemas = components["schemas"];
type Problem = Schemas["Problem"];
type Event = Schemas["Event"];
type Measured = Schemas["Best"]["value"]; // a number, or "NaN", "Infinity", "-Infinity"

const client = createClient<paths>({
  baseUrl: process.env["TANDEM_SERVER"] ?? "http://127.0.0.1:7171",
  headers: { Authorization: `Bearer ${process.env["TANDEM_TOKEN"] ?? ""}` },
  querySerializer: { array: { style: "form", explode: false } }, // lists are separated by commas
});

/** One key for all attempts of one logical call. */
const once = () => ({ "Idempotency-Key": crypto.randomUUID() });

/** The answer, or the problem as an exception. Problems have a code to decide on. */
function must<T>(answer: { data?: T; error?: Problem }): T {
  if (answer.error) throw new Error(`${answer.error.code}: ${answer.error.detail}`);
  return answer.data as T;
}

const file: Schemas["StudyFile"] = {
  name: "from-typescript",
  objective: { metric: "accuracy", direction: "maximize" },
  space: {
    learning_rate: { type: "float", low: 1e-4, high: 1e-1, log: true },
    optimizer: { values: ["sgd", "adam"] },
  },
  budget: { epochs: { min: 1, max: 3 }, eta: 3 },
  search: { method: "bohb", seed: 7, brackets: 1 },
  stop: { trials: 3 },
};

// @ts-expect-error: there is no such direction.
const misdirected: Schemas["StudyFileObjective"] = { metric: "accuracy", direction: "up" };
// @ts-expect-error: a study file has no such field.
const misspelt: Schemas["StudyFile"] = { name: "x", objective: misdirected, space: {}, serach: {} };
void misspelt;

async function create(): Promise<Schemas["StudyView"]> {
  const { plan, faults } = must(await client.POST("/api/v1/preview", { body: file }));
  if (!plan) throw new Error(`the study file has ${faults.length} faults`);
  console.log(`${plan.trials} trials, ${plan.epochs} epochs`);
  return must(await client.POST("/api/v1/studies", { params: { header: once() }, body: file }));
}

/** Plays a worker until the study is over. */
async function work(study: Schemas["StudyView"]): Promise<void> {
  const worker = "typescript-worker";
  must(await client.POST("/api/v1/workers", { body: { id: worker, name: "typescript", slots: 1, machine: { host: "here", cores: 1 } } }));
  for (;;) {
    const { lease, study_finished } = must(await client.POST("/api/v1/leases", { params: { header: once() }, body: { worker, study: study.id, wait_seconds: 5 } }));
    if (study_finished) break;
    if (!lease) continue;
    await train(lease);
  }
  await client.DELETE("/api/v1/workers/{worker}", { params: { path: { worker } } });
}

async function train(lease: Schemas["Lease"]): Promise<void> {
  const trial = { path: { trial: lease.trial_id } };
  const rate = lease.params["learning_rate"];
  if (typeof rate !== "number") throw new Error("a learning rate is a number");
  for (let epoch = lease.first_epoch; epoch <= lease.budget.epochs; epoch++) {
    const accuracy: Measured = lease.number === 1 ? "NaN" : 1 - Math.abs(Math.log10(rate) + 2) / 4 - 0.5 / (epoch + 1);
    const directive = must(
      await client.POST("/api/v1/trials/{trial}/reports", {
        params: { ...trial, header: once() },
        body: { lease_epoch: lease.lease_epoch, epoch, metrics: { accuracy }, seconds: 0.5 },
      }),
    );
    if (directive.action === "finish") break;
  }
  must(await client.POST("/api/v1/trials/{trial}/finish", { params: { ...trial, header: once() }, body: { lease_epoch: lease.lease_epoch, outcome: "budget_reached" } }));
}

/** What a stream of server-sent events says, one after the other. */
async function* events(study: string, signal: AbortSignal): AsyncGenerator<Event> {
  const { data, error } = await client.GET("/api/v1/studies/{study}/events", { params: { path: { study }, query: { after: 0 } }, parseAs: "stream", signal });
  if (error || !data) throw new Error(error?.detail ?? "there is no stream");
  const reader = data.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const line = part.split("\n").find((one) => one.startsWith("data:"));
      if (line) yield JSON.parse(line.slice("data:".length)) as Event;
    }
  }
}

/** One line of what happened. The kind of an event says what its data are. */
function said(event: Event): string {
  switch (event.kind) {
    case "study_created":
      return `study ${event.data?.name} was created`;
    case "study_status":
      return `the study is ${event.state}`;
    case "study_extended":
      return `the study may have ${event.data?.trials} trials`;
    case "study_set":
      return `the study has the priority ${event.data?.priority}`;
    case "study_owner":
      return `the study is ${event.data?.owner}'s`;
    case "trial_state":
      return `trial ${event.number} is ${event.data?.state ?? event.state}`;
    case "report":
      return `trial ${event.number} reported ${event.data?.metrics["accuracy"]} after epoch ${event.data?.epoch}`;
    case "checkpoint":
      return `trial ${event.number} saved ${event.data?.bytes} bytes`;
    case "emulation":
      return `an inference takes ${event.data?.latency_seconds} s (${event.data?.method})`;
    case "annotation":
      return `the tags are ${event.data?.tags?.join(", ")}`;
    case "search":
      return "the search decided";
  }
}

async function follow(study: string): Promise<Map<string, number>> {
  const kinds = new Map<string, number>();
  const end = new AbortController();
  for await (const event of events(study, end.signal)) {
    kinds.set(event.kind, (kinds.get(event.kind) ?? 0) + 1);
    if (event.kind !== "search") console.log(`${event.sequence}  ${said(event)}`);
    if (event.kind === "study_status" && event.state === "completed") break;
  }
  end.abort();
  return kinds;
}

async function main(): Promise<void> {
  const study = await create();
  const queued = must(await client.POST("/api/v1/studies/{study}/enqueue", { params: { path: { study: study.id }, header: once() }, body: { configurations: [{ learning_rate: 0.01, optimizer: "adam" }] } }));
  console.log(`${queued.waiting} waits`);
  const [kinds] = await Promise.all([follow(study.id), work(study)]);

  const { trials } = must(await client.GET("/api/v1/studies/{study}/trials", { params: { path: { study: study.id }, query: { sort: "rank", state: ["completed", "pruned", "paused"] } } }));
  for (const one of trials) {
    // @ts-expect-error: no trial is ever in such a state.
    if (one.state === "finished") throw new Error("impossible");
    console.log(`${one.rank}. trial ${one.number}: ${one.results.at(-1)?.values[0] ?? "not measured"}, ${one.state}`);
  }
  const answer = must(await client.GET("/api/v1/studies/{study}/recommendation", { params: { path: { study: study.id } } }));

  const taken = await client.POST("/api/v1/studies", { body: file });
  const wrong = await client.POST("/api/v1/studies", { body: { ...file, name: "another", budget: { eta: 1 } } });
  // @ts-expect-error: a problem's code is one of those of docs/protocol.md.
  if (taken.error?.code === "exists") throw new Error("impossible");

  console.log(JSON.stringify({
    events: Object.fromEntries(kinds),
    leaderboard: trials.map((one) => one.number),
    best: answer.best?.value,
    taken: taken.error?.code,
    wrong: wrong.error?.errors?.map((one) => one.path),
  }));
}

await main().catch((reason: unknown) => {
  console.error(reason);
  process.exit(1); // a stream that is still open would keep it
});
