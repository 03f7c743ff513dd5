/** The number of workers that a process keeps ready for its job, as in `job/tiltyard/job/standby.py` of the runner. */
const readyWorkers = 4;

/**
 * Returns the settings of a Ray node whose workers are ready for a job. By default Ray starts as many workers at once as
 * the node has CPUs, and ends idle workers beyond that number.
 */
export function readyWorkerSettings(numCpus: number): Readonly<Record<string, string>> {
  const workers = `${Math.ceil(numCpus) + readyWorkers}`;
  return { RAY_worker_maximum_startup_concurrency: workers, RAY_num_workers_soft_limit: workers };
}
