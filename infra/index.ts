import { readStackConfig } from "./config.ts";
import { deploy } from "./deploy.ts";

/** The program of the stack. Pulumi calls it, and its result becomes the outputs of the stack. */
export default () => deploy(readStackConfig());
