// Compares large manifests beside the page, which is not held up meanwhile.
import { compare, type Task } from './compare';

addEventListener('message', ({ data }: MessageEvent<Task>) => {
  const { left, right, ...rest } = compare(data);
  // One text copies faster than many.
  postMessage({ ...rest, left: left.join('\n'), right: right.join('\n'), shown: [left.length, right.length] });
});
