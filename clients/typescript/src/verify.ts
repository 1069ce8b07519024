/** `node dist/src/verify.js FILE`: check a proof, the JSON of a DealProof or of the answer to GetDealProof. */

import { readFileSync } from "node:fs";
import { problems, type ProofJson } from "./fairDeal.js";

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error("Name a file with a proof.");
  process.exit(2);
}
const content = JSON.parse(readFileSync(file, "utf8")) as ProofJson & { readonly proof?: ProofJson };
const found = problems(content.proof ?? content);
console.log([...found, found.length > 0 ? "The deal is NOT proven." : "The deal is proven."].join("\n"));
process.exitCode = found.length > 0 ? 1 : 0;
