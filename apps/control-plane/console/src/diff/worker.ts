// Compares large manifests beside the page, which is not held up meanwhile.
import { compare, packed, type Task } from './compare';

addEventListener('message', ({ data }: MessageEvent<Task>) => {
  const { left, right, ...rest } = compare(data);
  const [one, other] = [packed(left), packed(right)];
  const answer = { ...rest, left: { text: one.text, ends: one.ends }, right: { text: other.text, ends: other.ends } };
  (postMessage as (message: unknown, transfer: Transferable[]) => void)(answer, [one.ends.buffer, other.ends.buffer]);
});
