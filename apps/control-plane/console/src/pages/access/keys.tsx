// Keys: the caller's own, and those of a service account.
import { useSignal } from '@preact/signals';

import { serverNow } from '../../data/clock';
import { Confirm, Result, type Actions } from '../../ui/action';
import { Dialog } from '../../ui/parts';
import { Status } from '../../ui/status';
import { Age, age, exact, milliseconds, now } from '../../ui/time';
import { createKey, revokeKey } from './api';
import { Boxes } from './parts';
import type { Key } from './types';

const SCOPES = [
  { value: 'read', text: 'read: queries, and requests with GET' },
  { value: 'write', text: 'write: all mutations' },
  { value: 'runtimes', text: 'runtimes: registers and removes runtimes' },
  { value: 'images', text: 'images: reports images and annotations' },
  { value: 'app-proxy', text: 'app-proxy: lets an app-proxy act with all rights of its owner' },
];
const DAYS = [['30', '30 days'], ['90', '90 days'], ['365', 'a year'], ['', 'never']] as const;
export const KEY_NOTE = 'Copy it now: the control plane keeps only its digest and cannot show it again.';

/** A key that was made a moment ago, with its secret. */
export interface NewKey {
  name: string;
  text: string;
}

function Expiry({ at }: { at: string | undefined }) {
  const time = milliseconds(at);
  if (time === 0) return <span class="mute">never</span>;
  if (time <= now.value) return <Status value="Expired" title={exact(time)} />;
  return <time dateTime={new Date(time).toISOString()} title={exact(time)}>in {age(now.value, time)}</time>;
}

/** What a key is called: those of a person are its tokens. */
const wordOf = (owner: string) => (owner ? 'key' : 'token');
export const titleOf = (owner: string, name: string) => (owner ? `Key ${name}` : `Token ${name}`);

/** Creates a key of `owner`; the empty one is the caller. */
export function CreateKey({ owner, title, close, actions, show }: { owner: string; title: string; close: () => void; actions: Actions; show: (key: NewKey | null) => void }) {
  const scopes = useSignal<string[]>([]);
  const isLimited = useSignal(false);
  const days = useSignal('90');
  const lacksScope = isLimited.value && scopes.value.length === 0;
  const send = async (event: Event) => {
    event.preventDefault();
    if (lacksScope) return;
    const name = String(new FormData(event.currentTarget as HTMLFormElement).get('name')).trim();
    const wanted = { name, scopes: isLimited.value ? scopes.value : [], ...(days.value && { expires: new Date(serverNow() + Number(days.value) * 86_400_000).toISOString() }) };
    show(null);
    if (await actions.run('create-key', `create the ${wordOf(owner)}`, async () => show({ name, text: await createKey(owner, wanted) }), `${titleOf(owner, name)} was created. Copy it now.`, 'keys')) close();
  };
  return (
    <Dialog title={title} close={close}>
      <form class="fields" onSubmit={(event) => void send(event)}>
        <label>Name<input name="name" required maxLength={128} autocomplete="off" placeholder="what it is for" /></label>
        <label>Expires<select value={days.value} onChange={(event) => (days.value = event.currentTarget.value)}>{DAYS.map(([value, text]) => <option key={value} value={value}>{text === 'never' ? text : `in ${text}`}</option>)}</select></label>
        <fieldset class="boxes">
          <legend>What it may do</legend>
          <label class="check"><input type="radio" name="limit" checked={!isLimited.value} onChange={() => (isLimited.value = false)} />All that its owner may do</label>
          <label class="check"><input type="radio" name="limit" checked={isLimited.value} onChange={() => (isLimited.value = true)} />Only some of it</label>
        </fieldset>
        {isLimited.value && <Boxes title="Scopes" items={SCOPES} chosen={scopes.value} set={(next) => (scopes.value = next)} note="A key with scopes manages no keys, passwords and users." />}
        <div class="action"><button type="submit" class="primary" aria-disabled={actions.busy || lacksScope}>Create the {wordOf(owner)}</button>{lacksScope && <span class="mute">Choose at least one scope.</span>}<Result actions={actions} at="create-key" /></div>
      </form>
    </Dialog>
  );
}

/** The table of keys. A narrow one leaves out what is least asked for. */
export function Keys({ keys, owner, actions, revoked, isNarrow = false }: { keys: readonly Key[]; owner: string; actions: Actions; revoked: (key: Key) => void; isNarrow?: boolean }) {
  const asked = useSignal<Key | null>(null);
  const key = asked.value;
  const revoke = async (one: Key) => {
    const isDone = await actions.run('revoke', `revoke the ${wordOf(owner)}`, () => revokeKey(owner, one._id), `${titleOf(owner, one.name)} is revoked: it does not work any more.`, 'keys');
    if (isDone) revoked(one);
    return isDone;
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Keys">
      <table>
        <thead><tr><th scope="col">Name</th><th scope="col">Scopes</th>{!isNarrow && <><th scope="col">Secret begins with</th><th scope="col">Created</th></>}<th scope="col">Last used</th><th scope="col">Expires</th><th scope="col"><span class="sr">Actions</span></th></tr></thead>
        <tbody>
          {keys.map((one) => (
            <tr key={one._id}>
              <th scope="row">{one.name}</th>
              <td>{one.scopes.length > 0 ? one.scopes.join(', ') : 'all rights'}</td>
              {!isNarrow && <><td><code>{one.tokenPrefix}</code></td><td><Age at={one.created} ago /></td></>}
              <td>{one.lastUsed ? <Age at={one.lastUsed} ago /> : <span class="mute">never</span>}</td>
              <td><Expiry at={one.expires} /></td>
              <td><button type="button" class="quiet" aria-label={`Revoke ${one.name}…`} onClick={() => { actions.clear(); asked.value = one; }}>Revoke…</button></td>
            </tr>
          ))}
        </tbody>
      </table>
      {key && (
        <Confirm title={`Revoke the ${wordOf(owner)} ${key.name}?`} verb="Revoke" close={() => (asked.value = null)} actions={actions} place="revoke" confirm={() => revoke(key)}>
          <p>Programs that use it are refused at once. {key.lastUsed ? <>It was used <Age at={key.lastUsed} ago />.</> : 'It was never used.'} A revoked {wordOf(owner)} does not come back.</p>
        </Confirm>
      )}
    </div>
  );
}
