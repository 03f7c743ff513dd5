/** Bundles the console into the folder of the first argument, or into `assets`, where the service looks for it. */
import { join } from "node:path";
import { bundle } from "./bundle.ts";

await bundle(process.argv[2] ?? join(import.meta.dirname, "assets"), true);
