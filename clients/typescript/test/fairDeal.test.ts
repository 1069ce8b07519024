/** The vectors that every implementation shares. */

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  problems,
  type ProofJson,
  roundKey,
  seatCommitment,
  serverCommitment,
  tileOrder,
  transcript,
} from "../src/fairDeal.js";

interface Vector {
  readonly name: string;
  readonly matchId: string;
  readonly rulesHash: string;
  readonly secret: string;
  readonly entropies: readonly string[];
  readonly serverCommitment: string;
  readonly seatCommitments: readonly string[];
  readonly transcript: string;
  readonly rounds: readonly { readonly number: number; readonly key: string; readonly order: string }[];
}

interface Tampering {
  readonly name: string;
  readonly at: readonly (string | number)[];
  readonly value: unknown;
  readonly sentence: string;
}

interface Shared {
  readonly vectors: readonly Vector[];
  readonly keys: readonly { readonly key: string; readonly order: string }[];
  readonly proof: ProofJson;
  readonly tampered: readonly Tampering[];
}

const vectors = new URL("../../../conformance/fair-deal-v1.json", import.meta.url);
const shared = JSON.parse(readFileSync(vectors, "utf8")) as Shared;
const hex = (text: string): Buffer => Buffer.from(text, "hex");

for (const vector of shared.vectors) {
  test(`every step gives the fixed bytes: ${vector.name}`, () => {
    const secret = hex(vector.secret);
    const entropies = vector.entropies.map(hex);
    const server = serverCommitment(vector.matchId, secret);
    const commitments = entropies.map((entropy, index) =>
      entropy.length > 0 ? seatCommitment(vector.matchId, index + 1, entropy) : entropy,
    );
    const said = transcript(vector.matchId, hex(vector.rulesHash), server, commitments, entropies);
    assert.equal(server.toString("hex"), vector.serverCommitment);
    assert.deepEqual(commitments.map((each) => each.toString("hex")), vector.seatCommitments);
    assert.equal(said.toString("hex"), vector.transcript);
    for (const round of vector.rounds) {
      const key = roundKey(secret, said, round.number);
      assert.equal(key.toString("hex"), round.key);
      assert.equal(tileOrder(key).join(" "), round.order);
    }
  });
}

test("a key gives the fixed order", () => {
  for (const { key, order } of shared.keys) {
    assert.equal(tileOrder(hex(key)).join(" "), order);
  }
});

test("a true proof is proven", () => {
  assert.deepEqual(problems(shared.proof), []);
});

for (const tampering of shared.tampered) {
  test(`a proof that was tampered with fails with a sentence: ${tampering.name}`, () => {
    assert.ok(problems(changed(tampering)).includes(tampering.sentence));
  });
}

test("the command says so, with an exit status", () => {
  const command = new URL("../src/verify.js", import.meta.url).pathname;
  const file = join(mkdtempSync(join(tmpdir(), "fair-deal-")), "proof.json");
  writeFileSync(file, JSON.stringify({ proof: shared.proof }));
  assert.equal(execFileSync(process.execPath, [command, file], { encoding: "utf8" }), "The deal is proven.\n");
  const [first] = shared.tampered;
  assert.ok(first);
  writeFileSync(file, JSON.stringify(changed(first)));
  const failed = spawnSync(process.execPath, [command, file], { encoding: "utf8" });
  assert.equal(failed.status, 1);
  assert.equal(failed.stdout.split("\n")[0], first.sentence);
  assert.equal(spawnSync(process.execPath, [command]).status, 2);
});

/** The shared proof with one place changed. */
function changed(tampering: Tampering): ProofJson {
  const copy = structuredClone(shared.proof);
  const way = [...tampering.at];
  const last = way.pop();
  assert.ok(last !== undefined);
  let place = copy as unknown as Record<string | number, unknown>;
  for (const step of way) {
    place = place[step] as Record<string | number, unknown>;
  }
  place[last] = tampering.value;
  return copy;
}
