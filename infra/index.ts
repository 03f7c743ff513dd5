import { deploy } from "./deploy.ts";
import { readStackConfig } from "./read-config.ts";

/** The program of the stack. Pulumi calls it, and its result becomes the outputs of the stack. */
export default () => deploy(readStackConfig());
