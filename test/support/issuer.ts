import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

/** An OIDC issuer that serves its discovery document and its keys over HTTP. */
export class Issuer {
  readonly #server: Server;
  #published: JWK[] = [];
  readonly #private = new Map<string, Parameters<SignJWT["sign"]>[0]>();
  available = true;
  keysPath = "/jwks";
  keysAvailable = true;
  /** The number of requests that it holds without a response. */
  held = 0;
  isHolding = false;
  /** The number of requests that it received. */
  requests = 0;

  constructor() {
    this.#server = createServer((request, response) => {
      this.requests += 1;
      if (this.isHolding) {
        this.held += 1;
        response.once("close", () => {
          this.held -= 1;
        });
        return;
      }
      const isOfKeys = request.url === this.keysPath;
      const isKnown = isOfKeys ? this.keysAvailable : request.url === "/.well-known/openid-configuration";
      response.statusCode = this.available && isKnown ? 200 : 500;
      const document = isOfKeys
        ? { keys: this.#published }
        : { issuer: this.url, jwks_uri: `${this.url}${this.keysPath}` };
      response.end(this.available ? JSON.stringify(document) : "");
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    await this.rotate("first");
  }

  stop(): void {
    this.#server.close();
  }

  /** The settings of a catalog that accepts the tokens of this issuer. */
  get settings() {
    return { TILTYARD_AUTH: "oidc", TILTYARD_OIDC_ISSUER: this.url, TILTYARD_OIDC_AUDIENCE: "tiltyard" };
  }

  /** Signs with a new key from now on and publishes only that key. */
  async rotate(kid: string, alg = "RS256"): Promise<void> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    this.#private.set(kid, privateKey);
    this.#published = [{ ...(await exportJWK(publicKey)), kid, alg }];
  }

  token(claims: Record<string, unknown> = {}, header: { kid?: string; alg?: string } = {}): Promise<string> {
    const { kid = "first", alg = "RS256" } = header;
    const now = Math.floor(Date.now() / 1000);
    const payload = { iss: this.url, aud: "tiltyard", sub: "ada", iat: now, exp: now + 300, ...claims };
    const key = this.#private.get(kid);
    if (key === undefined) throw new Error(`no key ${kid}`);
    return new SignJWT(payload).setProtectedHeader({ alg, kid }).sign(key);
  }
}
