import { expect, test } from "vitest";
import { pythonModels } from "../../packaging/python-models.ts";
import { managementContracts } from "../../protocol/index.ts";
import { exitCodes } from "../../runner/job-text.ts";

const { describeJob, startJobAttempt, heartbeatJobAttempt, finishJobAttempt } = managementContracts;
const { describeJobFunction, readJobSecrets, recordJobFunction } = managementContracts;

test("generates the Python package's models of jobs: `npx vitest run -u` on this file writes them", async () => {
  const schemas = {
    Job: describeJob.response.shape.job,
    StartJobAttemptRequest: startJobAttempt.body,
    HeartbeatJobAttemptRequest: heartbeatJobAttempt.body,
    FinishJobAttemptRequest: finishJobAttempt.body,
    JobFunction: describeJobFunction.response.shape.function,
    ReadJobSecretsRequest: readJobSecrets.body,
    RecordJobFunctionRequest: recordJobFunction.body,
  };
  const models = pythonModels(schemas, exitCodes);
  await expect(models).toMatchFileSnapshot("../../runner/job/tiltyard/job/contracts.py");
});
