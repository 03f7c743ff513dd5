import { expect, test } from "vitest";
import { NeedsError } from "../../runner/platform.ts";
import { runtimeOf } from "../../runner/runtime-env.ts";

test("converts a manifest to Ray's runtime_env and to images of the Ray cluster", () => {
  const manifest = {
    name: "features",
    version: null,
    pip: ["numpy==2.1.3"],
    pip_extra_index_urls: ["https://packages.example.com/simple", "https://more.example.com"],
    py_modules: ["s3://code/features.zip"],
    env_vars: { MODEL: "small", HF_TOKEN: "secret://hugging-face/token" },
    zips: [["s3://code/workspace.zip"]],
    conda: {},
    head_image: "ray:head",
    worker_image: null,
    checksum: "abc",
  };
  expect(runtimeOf(JSON.stringify(manifest))).toEqual({
    env: {
      pip: ["numpy==2.1.3"],
      py_modules: ["s3://code/features.zip"],
      env_vars: {
        MODEL: "small",
        PIP_EXTRA_INDEX_URL: "https://packages.example.com/simple https://more.example.com",
        GENEVA_ZIPS: Buffer.from('{"zips":[["s3://code/workspace.zip"]]}').toString("base64"),
      },
    },
    secretEnv: { HF_TOKEN: { name: "hugging-face", key: "token" } },
    headImage: "ray:head",
    workerImage: undefined,
  });
});

test("changes nothing for an empty or absent manifest", () => {
  const nothing = { env: { env_vars: {} }, secretEnv: {}, headImage: undefined, workerImage: undefined };
  expect(runtimeOf(undefined)).toEqual(nothing);
  const empty = { pip: [], py_modules: [], zips: [[]], env_vars: {}, conda: {}, requirements_path: null };
  expect(runtimeOf(JSON.stringify(empty))).toEqual(nothing);
});

test.each([
  ["{", "manifest: is not JSON"],
  ['{"pip": "numpy"}', "manifest: pip: "],
  [
    '{"pip": ["numpy"], "conda": {"dependencies": ["pip"]}}',
    "manifest: Ray installs packages either with pip or with conda",
  ],
  ['{"requirements_path": "requirements.txt"}', "manifest: requirements_path is a file of the caller's machine"],
  ['{"py_modules": ["./features"]}', "manifest: ./features is a file of the caller's machine: upload it"],
  ['{"py_modules": ["s3://code/features"]}', "manifest: py_modules: Ray cannot load s3://code/features"],
  ['{"zips": [["code/a.zip"]]}', "manifest: code/a.zip is a file of the caller's machine"],
  ['{"env_vars": {"A": "secret://name"}}', "manifest: env_vars.A: secret://name is not secret://NAME/KEY"],
  ['{"env_vars": {"A": "secret://../other/key"}}', "is not secret://NAME/KEY"],
  ['{"env_vars": {"RAY_AUTH_TOKEN": "secret://name/key"}}', "a Secret must not become the variable RAY_AUTH_TOKEN"],
  ['{"env_vars": {"a b": "secret://name/key"}}', "a Secret must not become the variable a b"],
  ['{"env_vars": {"TILTYARD_API_KEY": "x"}}', "manifest: env_vars must not have TILTYARD_API_KEY"],
])("rejects the invalid manifest %s with a sentence", (manifest, problem) => {
  expect(() => runtimeOf(manifest)).toThrow(NeedsError);
  expect(() => runtimeOf(manifest)).toThrow(problem);
});
