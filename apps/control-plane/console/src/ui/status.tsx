import { state } from '../store/states';
import { Icon } from './icons';

/** A state: shape, word and colour. An empty text is shown as Unknown, `none` as a dash. */
export function Status({ value, none = false, title }: { value: string | null | undefined; none?: boolean; title?: string }) {
  if (!value && none) return <span class="mute">–</span>;
  const { word, shape, tone } = state(value);
  return (
    <span class={`state ${tone}`} title={title}>
      <Icon name={shape} />
      <span class="clip">{word}</span>
    </span>
  );
}
