// Runs a comparison where it holds nothing up.
import { scriptAddress } from '../live/script_address';
import { compare, PackedLines, type Comparison, type Task } from './compare';
import workerAddress from './worker.ts?worker&url';

const IN_PAGE = 60_000; // characters of JSON, which are less than 5,000 lines of YAML

interface Packed extends Omit<Comparison, 'left' | 'right'> {
  left: { text: string; ends: Int32Array };
  right: { text: string; ends: Int32Array };
}

/** Compares two manifests. Rejects when the worker fails; an aborted one never ends. */
export function run(task: Task, signal: AbortSignal): Promise<Comparison> {
  if (task.left.length + task.right.length <= IN_PAGE || typeof Worker === 'undefined') return Promise.resolve(compare(task));
  return new Promise((done, fail) => {
    const worker = new Worker(scriptAddress(workerAddress), { type: 'module' });
    signal.addEventListener('abort', () => worker.terminate());
    worker.onmessage = ({ data: { left, right, ...rest } }: MessageEvent<Packed>) => {
      worker.terminate();
      done({ ...rest, left: new PackedLines(left.text, left.ends), right: new PackedLines(right.text, right.ends) });
    };
    worker.onerror = (event) => {
      worker.terminate();
      fail(new Error(event.message || 'the comparison failed'));
    };
    worker.postMessage(task);
  });
}
