/** The provably fair deal, version 1: what a proof must satisfy. Written from docs/FAIR-DEAL.md alone. */

import { createHash, createHmac } from "node:crypto";

/** A tile in the JSON form of the service's messages: fields that are 0 may be missing. */
export interface TileJson {
  readonly low?: number;
  readonly high?: number;
}

/** A seat's part in the deal. Bytes are base64; a seat that takes no part has none. */
export interface SeatJson {
  readonly seat: string;
  readonly commitment?: string;
  readonly entropy?: string;
}

/** A round: the order of the tiles, the hands as dealt, and what was drawn. */
export interface RoundJson {
  readonly roundNumber?: number;
  readonly order?: readonly TileJson[];
  readonly hands?: readonly { readonly seat: string; readonly tiles?: readonly TileJson[] }[];
  readonly drawn?: readonly { readonly seat: string; readonly tile: TileJson }[];
}

/** The JSON form of a DealProof. */
export interface ProofJson {
  readonly matchId: string;
  readonly rulesHash: string;
  readonly serverCommitment: string;
  readonly secret: string;
  readonly seats: readonly SeatJson[];
  readonly rounds?: readonly RoundJson[];
}

const PREFIX = "spectacular-bid/deal/v1/";
const ENTROPY_BYTES = 32;
const HAND = 7;
const SEATS = ["ONE", "TWO"] as const;

/** What the service publishes when the match is made. */
export function serverCommitment(matchId: string, secret: Uint8Array): Buffer {
  return digest("server-commit", utf8(matchId), secret);
}

/** What seat 1 or 2 publishes before it opens its entropy. */
export function seatCommitment(matchId: string, seat: number, entropy: Uint8Array): Buffer {
  return digest("seat-commit", utf8(matchId), Uint8Array.of(seat), entropy);
}

/** The digest of everything that was said before the first deal; both commitments, then both entropies. */
export function transcript(
  matchId: string,
  rulesHash: Uint8Array,
  server: Uint8Array,
  commitments: readonly Uint8Array[],
  entropies: readonly Uint8Array[],
): Buffer {
  return digest("transcript", utf8(matchId), rulesHash, server, ...commitments, ...entropies);
}

/** The key of a round's order. */
export function roundKey(secret: Uint8Array, transcriptDigest: Uint8Array, round: number): Buffer {
  const number = Buffer.alloc(4);
  number.writeUInt32BE(round);
  return hmac(secret, framed(utf8(`${PREFIX}round-key`), transcriptDigest, number));
}

/** The 28 tiles such as "0-0" in the order that a key gives. */
export function tileOrder(key: Uint8Array): string[] {
  const tiles = canonicalTiles();
  const chance = byteStream(key);
  for (let last = tiles.length - 1; last > 0; last--) {
    const chosen = below(last + 1, chance);
    const moved = at(tiles, last);
    tiles[last] = at(tiles, chosen);
    tiles[chosen] = moved;
  }
  return tiles;
}

/** What is wrong with a proof, a sentence each; empty when every tile follows from what was committed to. */
export function problems(proof: ProofJson): string[] {
  if (proof.seats.map(({ seat }) => seat).join() !== "SEAT_ONE,SEAT_TWO") {
    return ["The proof does not name both seats, ONE first."];
  }
  const secret = bytes(proof.secret);
  const rulesHash = bytes(proof.rulesHash);
  if (secret.length !== ENTROPY_BYTES || rulesHash.length !== ENTROPY_BYTES) {
    return ["The secret and the hash of the rules must have 32 bytes each."];
  }
  const found: string[] = [];
  const server = bytes(proof.serverCommitment);
  if (!serverCommitment(proof.matchId, secret).equals(server)) {
    found.push("The service's secret is not the one that it committed to.");
  }
  proof.seats.forEach((seat, index) => found.push(...seatProblems(proof, seat, index)));
  const commitments = proof.seats.map(({ commitment }) => bytes(commitment));
  const entropies = proof.seats.map(({ entropy }) => bytes(entropy));
  const said = transcript(proof.matchId, rulesHash, server, commitments, entropies);
  for (const [index, round] of (proof.rounds ?? []).entries()) {
    if (round.roundNumber !== index + 1) {
      return [...found, `Round ${index + 1} is missing or out of place.`];
    }
    found.push(...roundProblems(round, tileOrder(roundKey(secret, said, round.roundNumber))));
  }
  return found;
}

function seatProblems(proof: ProofJson, seat: SeatJson, index: number): string[] {
  const name = SEATS[index];
  const commitment = bytes(seat.commitment);
  const entropy = bytes(seat.entropy);
  if (entropy.length === 0) {
    return commitment.length > 0 && (proof.rounds ?? []).length > 0
      ? [`Seat ${name} committed to entropy that was never opened, and yet tiles were dealt.`]
      : [];
  }
  if (commitment.length === 0) {
    return [`Seat ${name} has entropy that it never committed to.`];
  }
  const fits = entropy.length === ENTROPY_BYTES && seatCommitment(proof.matchId, index + 1, entropy).equals(commitment);
  return fits ? [] : [`Seat ${name}'s entropy is not the one that it committed to.`];
}

function roundProblems(round: RoundJson, order: readonly string[]): string[] {
  const found: string[] = [];
  const where = `Round ${round.roundNumber}`;
  if ((round.order ?? []).map(text).join(" ") !== order.join(" ")) {
    found.push(`${where}: the order of the tiles does not follow from the secrets.`);
  }
  SEATS.forEach((name, index) => {
    const hand = round.hands?.find(({ seat }) => seat === `SEAT_${name}`);
    const due = order.slice(index * HAND, (index + 1) * HAND);
    if ((hand?.tiles ?? []).map(text).sort().join(" ") !== due.sort().join(" ")) {
      found.push(`${where}: the hand of seat ${name} is not the one that was due.`);
    }
  });
  (round.drawn ?? []).forEach(({ tile }, index) => {
    if (text(tile) !== order[2 * HAND + index]) {
      found.push(`${where}: draw ${index + 1} is not the tile that was due.`);
    }
  });
  return found;
}

function canonicalTiles(): string[] {
  const tiles: string[] = [];
  for (let low = 0; low <= 6; low++) {
    for (let high = low; high <= 6; high++) {
      tiles.push(`${low}-${high}`);
    }
  }
  return tiles;
}

function* byteStream(key: Uint8Array): Generator<number, never> {
  for (let block = 0n; ; block++) {
    const number = Buffer.alloc(8);
    number.writeBigUInt64BE(block);
    yield* hmac(key, framed(utf8(`${PREFIX}block`), number));
  }
}

/** A uniform number below `bound`: bytes that would favour the small ones are passed over. */
function below(bound: number, chance: Generator<number, never>): number {
  const limit = 256 - (256 % bound);
  let byte = chance.next().value;
  while (byte >= limit) {
    byte = chance.next().value;
  }
  return byte % bound;
}

function framed(...parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      return [length, part];
    }),
  );
}

function digest(tag: string, ...parts: readonly Uint8Array[]): Buffer {
  return createHash("sha256").update(framed(utf8(PREFIX + tag), ...parts)).digest();
}

function hmac(key: Uint8Array, message: Uint8Array): Buffer {
  return createHmac("sha256", key).update(message).digest();
}

function utf8(words: string): Buffer {
  return Buffer.from(words, "utf8");
}

function bytes(base64: string | undefined): Buffer {
  return Buffer.from(base64 ?? "", "base64");
}

function text(tile: TileJson): string {
  return `${tile.low ?? 0}-${tile.high ?? 0}`;
}

function at<T>(list: readonly T[], index: number): T {
  const found = list[index];
  if (found === undefined) {
    throw new RangeError(`nothing at ${index}`);
  }
  return found;
}
