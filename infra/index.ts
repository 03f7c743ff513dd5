import { readStackConfig } from "./config.ts";
import { deploy } from "./deploy.ts";

/** The program of the stack: Pulumi calls it, and what it returns are the stack's outputs. */
export default () => deploy(readStackConfig());
