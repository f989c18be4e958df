import { useSignal } from '@preact/signals';

import { Result, useActions } from '../../ui/action';
import { Icon } from '../../ui/icons';
import { Empty, Failed, Loading } from '../../ui/parts';
import { useReading } from '../../ui/read';
import { Secret } from '../../ui/secret';
import { readKeys } from './api';
import { CreateKey, KEY_NOTE, Keys, titleOf, type NewKey } from './keys';
import { Head, usePageKeys } from './parts';

/** The caller's own tokens. */
export function TokensPage() {
  const keys = useReading('own', 'read your tokens', (signal) => readKeys('', signal));
  const actions = useActions(keys.again);
  const creating = useSignal(false);
  const made = useSignal<NewKey | null>(null);
  const show = (key: NewKey | null) => (made.value = key);
  const begin = () => {
    actions.clear();
    creating.value = true;
  };
  usePageKeys(keys.again, [{ keys: '+', text: 'Create a token', run: begin }]);
  return (
    <div class="page">
      <Head tab="tokens" count={keys.value?.length}><button type="button" onClick={begin}><Icon name="plus" />Create a token…</button></Head>
      <Result actions={actions} at="keys" />
      {made.value && <Secret title={titleOf('', made.value.name)} text={made.value.text} note={KEY_NOTE} forget={() => show(null)} />}
      {keys.failure && <Failed failure={keys.failure} retry={keys.again} />}
      {!keys.value && !keys.failure && <Loading what="your tokens" rows={3} />}
      {keys.value?.length === 0 && (
        <Empty title="You have no tokens">
          <p>A token lets a program act for you: the command line, a script, or app-proxy. For programs that outlive your time here an administrator makes a service account.</p>
          <p><button type="button" onClick={begin}>Create a token…</button></p>
        </Empty>
      )}
      {keys.value && keys.value.length > 0 && <><p class="mute small">These are your own tokens. The time of the last use is at most 10 minutes late.</p><Keys keys={keys.value} owner="" actions={actions} revoked={(key) => { if (made.value?.text.startsWith(`${key._id}.`)) show(null); }} /></>}
      {creating.value && <CreateKey owner="" title="Create a token" close={() => (creating.value = false)} actions={actions} show={show} />}
    </div>
  );
}
