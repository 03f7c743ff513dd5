// Pulumi's language host requires the entry point, and compiles TypeScript itself.
import "./plugin/provider.ts";
